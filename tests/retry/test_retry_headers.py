"""What a failed record says of itself, and the headers that it is given back with, or is dead with."""

from __future__ import annotations

import pytest

from odradek.kernel.retry.headers import (
    ATTEMPT,
    BEHIND,
    DEAD,
    ORIGIN,
    REASON,
    SPARED,
    Failure,
    Origin,
    dead_headers,
    own_headers,
    parse_origin,
    read_failure,
    retried_headers,
)

NEVER_FAILED = Failure(0, None, None, is_dead=False)


def test_a_record_without_our_headers_fails_for_the_first_time() -> None:
    assert read_failure((("own", b"1"),)) == NEVER_FAILED


def test_what_is_said_is_read() -> None:
    headers = ((ATTEMPT, b"3"), (REASON, b"why"), (ORIGIN, b"orders/2/77"), (DEAD, b"1"))

    assert read_failure(headers) == Failure(3, b"why", Origin("orders", 2, 77), is_dead=True)


@pytest.mark.parametrize("value", [None, b"", b"-1", b"three", b"1.5", b"9" * 10])
def test_an_attempt_that_cannot_be_read_counts_as_none(value: bytes | None) -> None:
    assert read_failure(((ATTEMPT, value),)) == NEVER_FAILED


@pytest.mark.parametrize("header", [ATTEMPT, SPARED])
def test_a_count_that_a_client_made_up_does_not_begin_again_where_it_grows(header: str) -> None:
    """Else who says a number as long as one may be has as many attempts once more."""
    failure = read_failure(((header, b"9" * 9),))
    again = retried_headers((), failure, failure.attempts + 1, spared_times=failure.spared_times + 1)

    said = read_failure(tuple(again))
    assert (said.attempts, said.spared_times) >= (failure.attempts, failure.spared_times)
    assert max(said.attempts, said.spared_times) > 10**8


@pytest.mark.parametrize("value", [None, b"", b"orders", b"orders/1", b"a b/1/2", b"orders/x/2", b"orders/1/-2"])
def test_an_origin_that_cannot_be_read_counts_as_none(value: bytes | None) -> None:
    assert parse_origin(value) is None


@pytest.mark.parametrize("value", [None, b"", b"-1", b"soon", b"9" * 19])
def test_a_time_to_be_behind_another_until_that_cannot_be_read_counts_as_none(value: bytes | None) -> None:
    assert read_failure(((BEHIND, value),)) == NEVER_FAILED


@pytest.mark.parametrize("value", [None, b"", b"0", b"false", b"False", b"no", b"11", b"true!"])
def test_dead_is_said_by_a_value(value: bytes | None) -> None:
    assert not read_failure(((DEAD, value),)).is_dead


@pytest.mark.parametrize("value", [b"1", b"true", b"True", b"TRUE"])
def test_dead_is_said_in_capitals_too(value: bytes) -> None:
    assert read_failure(((DEAD, value),)).is_dead


def test_of_a_header_that_is_there_twice_the_last_counts() -> None:
    assert read_failure(((ATTEMPT, b"1"), (ATTEMPT, b"2"))).attempts == 2


def test_a_record_is_given_back_with_its_own_headers_and_what_was_said() -> None:
    headers = (("own", b"1"), (ATTEMPT, b"1"), ("odradek.delayed.from", b"0:1"), (REASON, b"why"), ("own", b"2"))
    failure = read_failure(headers)

    assert retried_headers(headers, failure, 2) == [("own", b"1"), ("own", b"2"), (ATTEMPT, b"2"), (REASON, b"why")]


def test_a_dead_letter_says_where_it_came_from_how_often_and_why() -> None:
    headers = (("own", b"1"), (ATTEMPT, b"16"), (ORIGIN, b"old/2/77"), (REASON, b"why"), (DEAD, b"1"))
    dead = dead_headers(headers, read_failure(headers), topic="orders", group="billing", now_ms=1_000)

    assert dead == [
        ("own", b"1"),
        ("__dlq.errors.topic", b"old"),
        ("__dlq.errors.partition", b"2"),
        ("__dlq.errors.offset", b"77"),
        ("__dlq.errors.group", b"billing"),
        ("__dlq.errors.delivery.count", b"17"),
        ("__dlq.errors.message", b"why"),
        (ATTEMPT, b"16"),
        ("odradek.dead.timestamp", b"1000"),
    ]
    assert own_headers(tuple(dead)) == [("own", b"1")]


def test_a_dead_letter_of_unknown_origin_names_the_topic_alone() -> None:
    dead = dict(dead_headers((), NEVER_FAILED, topic="orders", group="billing", now_ms=1_000))

    assert dead["__dlq.errors.topic"] == b"orders"
    assert not {"__dlq.errors.partition", "__dlq.errors.offset", "__dlq.errors.message"} & set(dead)
