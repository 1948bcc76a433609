"""Every session held with our broker, and compared with what Apache Kafka answered.

A difference is fixed, or explained in `differences.toml`. Golden files are recorded by
`python -m tools.record_differential`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import brokers, golden
from .comparison import compare, load_known
from .conversation import run_session
from .sessions import SESSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

KNOWN = load_known(Path(__file__).parent / "differences.toml")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with brokers.odradek(tmp_path_factory.mktemp("differential") / "data") as address:
        yield address


@pytest.mark.parametrize("session", SESSIONS)
def test_we_answer_as_apache_kafka_does(session: str, address: tuple[str, int]) -> None:
    ours = run_session(session, SESSIONS[session], *address)
    differences = compare(session, golden.load(session), ours)
    known = [entry for entry in KNOWN if session in entry.sessions]
    unexplained = [str(found) for found in differences if not any(entry.covers(found) for entry in known)]
    explains_nothing = [entry for entry in known if not any(map(entry.covers, differences))]

    assert not unexplained, "\n".join(unexplained)
    assert not explains_nothing


def test_every_known_difference_is_one_of_a_session() -> None:
    assert {name for entry in KNOWN for name in entry.sessions} <= set(SESSIONS)


def test_every_golden_file_belongs_to_a_session() -> None:
    assert sorted(SESSIONS) == sorted(path.stem for path in golden.FOLDER.glob("*.json"))
