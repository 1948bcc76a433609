"""The plugin keeps Odradek's contract, does what it is for, and works in a broker."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from odradek_template.batch_limit import RECORDS_MAX, BatchLimit, make_stage

from odradek.kernel.api import AppendStageFactory, ErrorCode, KafkaError
from odradek.testing.batches import make_batch
from odradek.testing.contracts.append_stage import AppendStageContract
from odradek.testing.running_broker import running_broker


class TestBatchLimit(AppendStageContract):
    def make_factory(self) -> AppendStageFactory:
        return make_stage

    def settings_in_use(self) -> Mapping[str, object]:
        return {RECORDS_MAX: 100}

    def settings_not_in_use(self) -> Mapping[str, object]:
        return {RECORDS_MAX: 0}


def test_as_many_as_allowed_are_kept() -> None:
    batch = memoryview(make_batch(0, count=2))

    assert BatchLimit(2).accept(batch) is batch


def test_one_too_many_is_refused() -> None:
    with pytest.raises(KafkaError) as caught:
        BatchLimit(1).accept(memoryview(make_batch(0, count=2)))

    assert caught.value.code is ErrorCode.POLICY_VIOLATION


def test_a_broker_takes_the_topic_key(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text('[topics.orders]\n"odradek.batch.limit.records" = 100\n')
    with running_broker(config=config) as broker:
        assert broker.port > 0
