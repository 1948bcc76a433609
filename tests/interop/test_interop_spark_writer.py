"""The Spark sink's exactly-once against Apache Kafka: a process dies at a request, the next run begins; rows come once.

Kafka 4 speaks version 2 of transactions; the plain tests of the sink do the same against a broker of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..spark_plugin.exactly_once_life import Life
from ..spark_plugin.topic_kit import open_kit
from .brokers import kafka_at
from .clients import import_or_skip

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

import_or_skip("pyarrow", "pip install '.[spark]'")


def test_a_death_at_any_request_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with kafka_at(tmp_path) as kafka, open_kit(kafka.address) as kit:
        for is_done in (False, True):
            for at in range(1 + 3 * is_done, 48, 7):
                life = Life(kit.bootstrap, kit.new_topic(2, internal_segment_bytes="1048576"))
                life.run_to_the_end(at, is_done=is_done)
                found = sorted(row[1] for row in kit.consumed(life.topic, is_read_committed=True))

                assert found == life.expected, f"died at request {at}"
