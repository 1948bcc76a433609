"""What the oracle of delayed records says of a log with each mistake."""

from __future__ import annotations

import pytest

from odradek.lab.simulator.delay_oracle import DelayOracle, Later, Seen
from odradek.lab.simulator.oracle import PromiseBrokenError

NOW = Later("now", 0, 0)
SOON = Later("soon", 0, 10)
LATE = Later("late", 0, 20)
GONE = Later("gone", 0, 10, "t")
AT_ONCE = Seen(1, "now", 5, None)
AT_TEN = Seen(4, "soon", 10, 2)
AT_TWENTY = Seen(6, "late", 20, 3)


def told() -> DelayOracle:
    oracle = DelayOracle()
    for record in (NOW, SOON, LATE, GONE):
        oracle.sent(record)
    oracle.acknowledged([NOW, SOON, LATE])
    oracle.aborted([GONE])
    return oracle


def test_what_is_as_it_must_be_passes() -> None:
    oracle = told()
    oracle.read(0, AT_TEN, 10)
    oracle.check_log(0, [AT_ONCE, AT_TEN, AT_TWENTY])

    assert (oracle.open_count, oracle.acknowledged_count, oracle.delivered_count) == (0, 3, 1)


@pytest.mark.parametrize(
    ("rule", "seen", "now_ms"),
    [
        ("early", AT_TEN, 9),
        ("origin", Seen(4, "stranger", 10, 2), 10),
        ("aborted", Seen(4, "gone", 10, 2), 10),
        ("change", Seen(1, "soon", 10, 2), 10),
    ],
)
def test_what_must_not_be_read_is_told(rule: str, seen: Seen, now_ms: int) -> None:
    oracle = told()
    oracle.read(0, AT_ONCE, 5)

    with pytest.raises(PromiseBrokenError) as broken:
        oracle.read(0, seen, now_ms)

    assert broken.value.rule == rule


@pytest.mark.parametrize(
    ("rule", "log"),
    [
        ("kept", [AT_ONCE, AT_TEN]),
        ("kept", [Seen(2, "now", 5, None), AT_TEN, AT_TWENTY]),
        ("once", [AT_ONCE, AT_TEN, AT_TWENTY, Seen(8, "soon", 10, 2)]),
        ("order", [AT_ONCE, Seen(4, "late", 20, 3), Seen(6, "soon", 10, 2)]),
    ],
)
def test_a_log_that_is_wrong_is_told(rule: str, log: list[Seen]) -> None:
    oracle = told()
    oracle.read(0, AT_ONCE, 5)

    with pytest.raises(PromiseBrokenError) as broken:
        oracle.check_log(0, log)

    assert broken.value.rule == rule


def test_who_began_to_wait_later_may_come_behind() -> None:
    oracle = told()

    oracle.check_log(0, [AT_ONCE, Seen(4, "late", 20, 3), Seen(8, "soon", 10, 6)])


def test_what_is_unknown_may_be_there_or_not() -> None:
    oracle = told()
    oracle.sent(Later("unknown", 0, 5))
    oracle.given_up([Later("unknown", 0, 5)])

    oracle.check_log(0, [AT_ONCE, AT_TEN, AT_TWENTY])
    oracle.check_log(0, [AT_ONCE, Seen(2, "unknown", 5, None), AT_TEN, AT_TWENTY])
