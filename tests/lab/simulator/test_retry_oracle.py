"""What the oracle of failed records says of logs with each mistake."""

from __future__ import annotations

import attrs
import pytest

from odradek.lab.simulator.oracle import PromiseBrokenError
from odradek.lab.simulator.retry_oracle import Failure, RetryOracle, Returned

FIRST = Failure("first", "a", partition=0, attempts=0, is_over=False, due_ms=10)
AGAIN = Failure("again", "a", partition=0, attempts=1, is_over=False, due_ms=20)
OVER = Failure("over", "a", partition=0, attempts=2, is_over=True, due_ms=0)
GONE = Failure("gone", "b", partition=0, attempts=0, is_over=False, due_ms=10)
GONE_DEAD = Failure("gone, dead", "c", partition=0, attempts=0, is_over=True, due_ms=0)
BACK = Returned(3, "first", "a", 1)
BACK_AGAIN = Returned(7, "again", "a", 2)
DEAD = Returned(1, "over", "a", 2)


def told() -> RetryOracle:
    oracle = RetryOracle()
    for failure in (FIRST, AGAIN, OVER, GONE, GONE_DEAD):
        oracle.sent(failure)
    oracle.acknowledged([FIRST, AGAIN, OVER])
    oracle.aborted([GONE, GONE_DEAD])
    return oracle


def test_what_is_as_it_must_be_passes() -> None:
    oracle = told()

    assert oracle.read(0, BACK, 10) == FIRST
    oracle.check_logs({0: [BACK, BACK_AGAIN]}, {0: [DEAD]})
    assert (oracle.open_count, oracle.acknowledged_count, oracle.returned_count, oracle.dead_count) == (0, 3, 1, 1)


def test_of_what_nobody_knows_the_fate_it_may_be_there_or_not() -> None:
    oracle = told()
    unknown = attrs.evolve(FIRST, name="unknown")
    oracle.sent(unknown)
    oracle.given_up([unknown])

    for returned in ([BACK, BACK_AGAIN], [BACK, BACK_AGAIN, Returned(9, "unknown", "a", 1)]):
        oracle.check_logs({0: returned}, {0: [DEAD]})


@pytest.mark.parametrize(
    ("rule", "returned", "now_ms"),
    [
        ("early", BACK_AGAIN, 19),
        ("origin", Returned(9, "stranger", "a", 1), 10),
        ("origin", Returned(9, "again", "b", 2), 20),
        ("origin", Returned(9, "again", "a", 1), 20),
        ("aborted", Returned(9, "gone", "b", 1), 10),
        ("dead", Returned(9, "over", "a", 3), 30),
        ("change", Returned(3, "again", "a", 2), 20),
    ],
)
def test_what_must_not_come_back_is_told(rule: str, returned: Returned, now_ms: int) -> None:
    oracle = told()
    oracle.read(0, BACK, 10)

    with pytest.raises(PromiseBrokenError) as broken:
        oracle.read(0, returned, now_ms)
    assert rule in str(broken.value)


@pytest.mark.parametrize(
    ("rule", "returned", "dead"),
    [
        ("kept", [BACK], [DEAD]),
        ("kept", [BACK, BACK_AGAIN], []),
        ("kept", [attrs.evolve(BACK, offset=4), BACK_AGAIN], [DEAD]),
        ("once", [BACK, BACK_AGAIN, attrs.evolve(BACK, offset=9)], [DEAD]),
        ("once", [BACK, BACK_AGAIN], [DEAD, attrs.evolve(DEAD, offset=2)]),
        ("dead", [BACK, BACK_AGAIN], [DEAD, Returned(2, "first", "a", 0)]),
        ("aborted", [BACK, BACK_AGAIN], [DEAD, Returned(2, "gone, dead", "c", 0)]),
    ],
)
def test_logs_that_must_not_be_are_told(rule: str, returned: list[Returned], dead: list[Returned]) -> None:
    oracle = told()
    oracle.read(0, BACK, 10)

    with pytest.raises(PromiseBrokenError) as broken:
        oracle.check_logs({0: returned}, {0: dead})
    assert rule in str(broken.value)
