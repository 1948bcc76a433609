"""The asking end of a fetch session: what is named, what is forgotten, and when it begins again."""

from __future__ import annotations

import uuid

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.fetch_session_handler import FINAL_EPOCH, FIRST_EPOCH, FetchSessionHandler, Wish
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchResponse

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
OLD, NEW = uuid.UUID(int=1), uuid.UUID(int=2)


def wish(partition: TopicPartition, offset: int = 0, topic_id: uuid.UUID = OLD) -> Wish:
    return Wish(topic_id, FetchPartition(partition=partition.partition, fetch_offset=offset))


def opened() -> FetchSessionHandler:
    """Return a session in which the broker remembers both partitions."""
    session = FetchSessionHandler()
    session.plan({FIRST: wish(FIRST), SECOND: wish(SECOND)})
    assert session.answered(FetchResponse(session_id=5, responses=[]))
    return session


def test_the_first_request_names_everything() -> None:
    wanted = {FIRST: wish(FIRST), SECOND: wish(SECOND)}

    assert FetchSessionHandler().plan(wanted) == (wanted, [])


def test_later_ones_name_what_moved_only() -> None:
    named, forgotten = opened().plan({FIRST: wish(FIRST, 7), SECOND: wish(SECOND)})

    assert (list(named), forgotten) == ([FIRST], [])


def test_what_is_no_longer_wanted_is_forgotten() -> None:
    named, forgotten = opened().plan({FIRST: wish(FIRST)})

    assert not named
    assert [(topic.topic, topic.topic_id, topic.partitions) for topic in forgotten] == [("t", OLD, [1])]


def test_a_topic_that_was_made_anew_is_another_one() -> None:
    named, forgotten = opened().plan({FIRST: wish(FIRST, topic_id=NEW), SECOND: wish(SECOND, topic_id=NEW)})

    assert list(named) == [FIRST, SECOND]
    assert [(topic.topic_id, topic.partitions) for topic in forgotten] == [(OLD, [0, 1])]


@pytest.mark.parametrize(
    ("code", "session_id"), [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 5)]
)
def test_an_error_of_the_session_begins_it_again_and_closes_what_may_be_left(code: ErrorCode, session_id: int) -> None:
    session = opened()
    assert not session.answered(FetchResponse(error_code=code, responses=[]))

    assert (session.session_id, session.epoch) == (session_id, FIRST_EPOCH)
    assert session.plan({FIRST: wish(FIRST)})[0] == {FIRST: wish(FIRST)}


def test_it_is_settled_once_the_broker_has_given_a_session_or_none_until_a_request_fails() -> None:
    session = FetchSessionHandler()
    seen = [session.is_settled]
    for session_id in (0, 0, 5, 5, 0):
        session.plan({FIRST: wish(FIRST)})
        session.answered(FetchResponse(session_id=session_id, responses=[]))
        seen.append(session.is_settled)
    session.failed()
    seen.append(session.is_settled)

    assert seen == [False, True, True, True, True, True, False]
    assert not session.is_incremental


def test_epochs_begin_again_at_one_after_the_last() -> None:
    session = opened()
    session.epoch = 2**31 - 1
    session.answered(FetchResponse(session_id=5, responses=[]))

    assert session.epoch == 1


def test_a_session_ends_once_and_only_if_there_is_one() -> None:
    session = FetchSessionHandler()
    assert session.end() is None
    session.plan({})
    session.answered(FetchResponse(session_id=5, responses=[]))
    request = session.end()

    assert request is not None
    assert (request.session_id, request.session_epoch, request.topics, request.max_wait_ms) == (5, FINAL_EPOCH, [], 0)
    assert session.end() is None
