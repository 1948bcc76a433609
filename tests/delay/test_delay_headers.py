"""What a record's headers ask for, and what a producer is told that asked for what cannot be done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.delay.headers import (
    DELAY_CANCEL,
    DELAY_ID,
    DELAYED_FROM,
    DELAYED_TIMESTAMP,
    DELIVER_AFTER,
    DELIVER_AT,
    INT64_MAX,
    PREFIX,
    Delay,
    DelayHeaderError,
    delivered_headers,
    digest_of,
    parse_delay,
)
from odradek.kernel.records.record import Record

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def parsed(*headers: tuple[str, bytes | None], delay_ms_max: int = 365 * DAY_MS) -> Delay | None:
    return parse_delay(headers, NOW_MS, delay_ms_max)


def test_a_record_that_asks_for_nothing_is_like_any_other() -> None:
    assert parsed() is None
    assert parsed(("after", b"5"), ("odradek.other", b"x"), (DELAYED_FROM, b"0:7")) is None
    assert parsed((DELAY_ID, b"a name for nothing")) is None


def test_a_delay_counts_from_now() -> None:
    assert parsed((DELIVER_AFTER, b"5000")) == Delay(NOW_MS + 5000, None)


def test_a_due_time_is_taken_as_it_is() -> None:
    assert parsed((DELIVER_AT, b"%d" % (NOW_MS + 1))) == Delay(NOW_MS + 1, None)


def test_a_time_gone_by_is_none() -> None:
    assert parsed((DELIVER_AFTER, b"0")) is None
    assert parsed((DELIVER_AT, b"0")) is None
    assert parsed((DELIVER_AT, b"%d" % NOW_MS)) is None


def test_of_a_doubled_header_the_last_one_counts() -> None:
    assert parsed((DELIVER_AFTER, b"x"), (DELIVER_AFTER, b"7")) == Delay(NOW_MS + 7, None)


def test_a_delayed_record_may_have_a_name() -> None:
    assert parsed((DELAY_ID, b"order-7"), (DELIVER_AFTER, b"1")) == Delay(NOW_MS + 1, digest_of(b"order-7"))


def test_a_canceller_is_never_due() -> None:
    canceller = parsed((DELAY_CANCEL, b"order-7"))

    assert canceller == Delay(None, digest_of(b"order-7"))
    assert canceller is not None
    assert canceller.is_canceller


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        pytest.param([(DELIVER_AFTER, b"soon")], "'soon' is no number of milliseconds", id="no-number"),
        pytest.param([(DELIVER_AFTER, b"")], "'' is no number", id="empty"),
        pytest.param([(DELIVER_AFTER, None)], "null is no number", id="null"),
        pytest.param([(DELIVER_AFTER, b"1.5")], "'1.5' is no number", id="fraction"),
        pytest.param([(DELIVER_AFTER, b"+5")], "no number", id="plus"),
        pytest.param([(DELIVER_AFTER, b" 5")], "no number", id="space"),
        pytest.param([(DELIVER_AFTER, "٣".encode())], "no number", id="other-digits"),
        pytest.param([(DELIVER_AFTER, b"5\n")], "no number", id="line-end"),
        pytest.param([(DELIVER_AFTER, b"\0\0\0\0\0\0\0\x05")], "no number", id="binary"),
        pytest.param([(DELIVER_AFTER, b"\xff" * 100)], "'" + "\\\\xff" * 40 + "'...", id="long-binary"),
        pytest.param([(DELIVER_AFTER, b"-1")], "'-1' is negative", id="negative"),
        pytest.param([(DELIVER_AT, b"-1")], "'-1' is negative", id="negative-time"),
        pytest.param([(DELIVER_AT, b"9" * 19)], f"is more than {INT64_MAX}", id="beyond-int64"),
        pytest.param([(DELIVER_AT, b"1" * 20)], f"is more than {INT64_MAX}", id="twenty-digits"),
        pytest.param([(DELIVER_AFTER, b"%d" % INT64_MAX)], "there is no time any more", id="end-of-time"),
        pytest.param([(DELIVER_AFTER, b"1"), (DELIVER_AT, b"1")], "only one can be", id="both"),
        pytest.param([(DELIVER_AFTER, b"%d" % (366 * DAY_MS))], "is longer than the topic's", id="too-long"),
        pytest.param([(DELIVER_AT, b"%d" % INT64_MAX)], "is longer than the topic's", id="too-far"),
        pytest.param([(DELIVER_AFTER, b"1"), (DELAY_ID, b"")], "an empty name", id="empty-id"),
        pytest.param([(DELAY_CANCEL, None)], "an empty name", id="cancel-nothing"),
        pytest.param([(DELAY_CANCEL, b"a"), (DELIVER_AFTER, b"1")], "stands alone", id="delayed-canceller"),
        pytest.param([(DELAY_CANCEL, b"a"), (DELAY_ID, b"b")], "stands alone", id="named-canceller"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_reason(headers: list[tuple[str, bytes | None]], reason: str) -> None:
    with pytest.raises(DelayHeaderError) as refused:
        parsed(*headers)

    assert reason in str(refused.value)


def test_the_longest_delay_of_the_topic_is_taken() -> None:
    assert parsed((DELIVER_AFTER, b"10"), delay_ms_max=10) == Delay(NOW_MS + 10, None)
    with pytest.raises(DelayHeaderError, match="a delay of 11 ms"):
        parsed((DELIVER_AFTER, b"11"), delay_ms_max=10)


def test_no_horizon_is_too_far_where_the_topic_sets_none() -> None:
    assert parsed((DELIVER_AT, b"%d" % INT64_MAX), delay_ms_max=INT64_MAX) == Delay(INT64_MAX, None)


@given(st.lists(st.tuples(st.sampled_from([DELIVER_AFTER, DELIVER_AT, DELAY_ID, "x"]), st.none() | st.binary())))
def test_any_bytes_are_taken_or_refused(headers: list[tuple[str, bytes | None]]) -> None:
    try:
        delay = parsed(*headers)
    except DelayHeaderError:
        return

    assert delay is None or (delay.due_ms is not None and delay.due_ms > NOW_MS)


def test_every_header_that_asks_begins_alike() -> None:
    assert all(name.encode().startswith(PREFIX) for name in (DELIVER_AFTER, DELIVER_AT, DELAY_ID, DELAY_CANCEL))


def test_a_delivered_record_has_the_producers_headers_and_says_where_it_comes_from() -> None:
    headers = (("a", b"1"), (DELIVER_AFTER, b"5"), (DELAY_ID, b"x"), ("a", None), (DELAYED_FROM, b"0:1"))
    record = Record(101, NOW_MS, b"k", b"v", headers)

    assert delivered_headers(record, 7) == [
        ("a", b"1"),
        ("a", None),
        (DELAYED_FROM, b"7:101"),
        (DELAYED_TIMESTAMP, b"%d" % NOW_MS),
    ]
