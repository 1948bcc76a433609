"""Every session held with our broker, and compared with what Apache Kafka answered.

A difference is fixed, or explained in `differences.toml`. Golden files are recorded by
`python -m tools.record_differential`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import brokers, codec, golden
from .comparison import compare, load_known
from .conversation import Conversation, run_session
from .sessions import SESSIONS, together
from .sessions.bodies import ANSWERED
from .three import THREE_SESSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

NEVER_ANSWERED = {(0, 0), (0, 1), (0, 2)}
"""Versions of Produce that are advertised for librdkafka's sake only, as Kafka does: see the session `odd_requests`."""
KNOWN = load_known(Path(__file__).parent / "differences.toml")


@pytest.fixture(scope="module", params=["auto", "portable"])
def address(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """Give where a broker of ours is, by each loop."""
    data_dir = tmp_path_factory.mktemp("differential") / "data"
    with brokers.odradek(data_dir, f"odradek.network.loop={request.param}") as address:
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


@pytest.fixture(scope="module")
def flushing_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with brokers.odradek(tmp_path_factory.mktemp("flushing") / "data", "log.flush.interval.messages=1") as address:
        yield address


@pytest.mark.parametrize("session", [name for name in SESSIONS if SESSIONS[name].__module__ == together.__name__])
def test_requests_take_effect_in_kafkas_order_however_writes_are_kept(
    session: str, flushing_address: tuple[str, int]
) -> None:
    assert not compare(session, golden.load(session), run_session(session, SESSIONS[session], *flushing_address))


@pytest.fixture(scope="module")
def advertised(address: tuple[str, int]) -> set[tuple[int, int]]:
    """Return what our broker says that it answers: keys of APIs with versions."""
    talk = Conversation("advertised", *address)
    try:
        answer = talk.quietly("ApiVersions", 0, {})
    finally:
        talk.close()
    return {
        (api["api_key"], version)
        for api in answer["api_keys"]
        for version in range(api["min_version"], api["max_version"] + 1)
    }


def test_every_version_that_is_advertised_is_asked_in_a_session(advertised: set[tuple[int, int]]) -> None:
    steps = [step for session in SESSIONS for step in golden.load(session)]
    asked = {(codec.api_key(step.api), step.version) for step in steps}

    assert advertised - asked == NEVER_ANSWERED


def test_broken_bodies_are_sent_to_every_api(advertised: set[tuple[int, int]]) -> None:
    assert {codec.api_key(api) for api in ANSWERED} == {key for key, _ in advertised}


def test_every_known_difference_is_one_of_a_session() -> None:
    assert {name for entry in KNOWN for name in entry.sessions} <= set(SESSIONS)


def test_every_golden_file_belongs_to_a_session() -> None:
    assert sorted([*SESSIONS, *THREE_SESSIONS]) == sorted(path.stem for path in golden.FOLDER.glob("*.json"))
