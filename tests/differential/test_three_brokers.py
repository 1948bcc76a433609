"""Every session held with three of our brokers, and compared with what three of Apache Kafka's answered.

A difference is fixed, or explained in `differences_of_three.toml`. Golden files (`golden/three_*.json`) are recorded by
`python -m tools.record_differential --three`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import brokers, golden
from .cluster_talk import run_cluster_session
from .comparison import compare, load_known
from .three import THREE_SESSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

KNOWN = load_known(Path(__file__).parent / "differences_of_three.toml")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, tuple[str, int]]]:
    """Give where three brokers of ours are."""
    with brokers.three_of_odradek(tmp_path_factory.mktemp("three") / "data") as found:
        yield found


@pytest.mark.parametrize("session", THREE_SESSIONS)
def test_three_brokers_answer_as_three_of_apache_kafka_do(session: str, nodes: Mapping[str, tuple[str, int]]) -> None:
    ours = run_cluster_session(session, THREE_SESSIONS[session], nodes)
    differences = compare(session, golden.load(session), ours)
    known = [entry for entry in KNOWN if session in entry.sessions]
    unexplained = [str(found) for found in differences if not any(entry.covers(found) for entry in known)]
    explains_nothing = [entry for entry in known if not any(map(entry.covers, differences))]

    assert not unexplained, "\n".join(unexplained)
    assert not explains_nothing


def test_every_known_difference_of_three_is_one_of_a_session_and_gives_its_reason() -> None:
    assert {name for entry in KNOWN for name in entry.sessions} <= set(THREE_SESSIONS)
    assert [entry for entry in KNOWN if len(entry.reason) <= 20] == []
