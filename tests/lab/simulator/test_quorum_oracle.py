"""The oracle of a quorum: each of its rules is broken once, and found."""

import uuid
from collections.abc import Callable

import pytest

from odradek.lab.simulator.oracle import PromiseBrokenError
from odradek.lab.simulator.quorum_oracle import QuorumOracle, Voter

ONE, TWO, THREE = (Voter(number, uuid.UUID(int=number)) for number in (1, 2, 3))
TWO_ANEW = Voter(2, uuid.UUID(int=20))


def seen() -> QuorumOracle:
    """An oracle that knows of epoch 4, in which node 1 leads from offset 10 on, and that all below 12 is committed."""
    oracle = QuorumOracle()
    oracle.commits(TWO, [(0, b"old")], 10)
    oracle.voted(TWO, 4, ONE)
    assert oracle.leads(ONE, 4)
    oracle.begins(ONE, 4, [(0, b"old")], 10, is_voter=True)
    oracle.commits(ONE, [(10, b"first"), (11, b"second")], 12, led_from=10)
    oracle.names(11, frozenset({ONE, TWO, THREE}))
    return oracle


def test_what_may_be_is_nothing_wrong() -> None:
    oracle = seen()
    assert not oracle.leads(ONE, 4)
    oracle.voted(TWO, 4, ONE)
    oracle.voted(THREE, 5, TWO)
    oracle.is_in(TWO, 5)
    oracle.commits(TWO, [(11, b"second")], 12)
    assert oracle.leads(TWO, 5)
    oracle.begins(TWO, 5, [(0, b"old"), (10, b"first"), (11, b"second"), (12, b"more")], 13, is_voter=True)
    oracle.commits(TWO, [(12, b"more"), (13, b"own")], 14, led_from=13)
    oracle.names(12, frozenset({ONE, THREE}))
    oracle.starts(TWO, 5, None)
    oracle.starts(THREE, 5, TWO)
    oracle.starts(TWO_ANEW, -1, None)
    oracle.is_in(TWO_ANEW, 0)
    oracle.voted(TWO_ANEW, 4, THREE)

    assert (oracle.epochs_count, oracle.committed_end, oracle.voters) == (2, 14, frozenset({ONE, THREE}))
    assert oracle.votes_count == 3


def test_who_wins_late_need_not_have_what_a_later_epoch_committed() -> None:
    oracle = seen()
    assert oracle.leads(THREE, 3)

    oracle.begins(THREE, 3, [(0, b"old"), (10, b"another")], 11, is_voter=True)


def broken_begin(oracle: QuorumOracle, end: int, second: bytes, *, is_voter: bool = True) -> None:
    oracle.leads(TWO, 5)
    oracle.begins(TWO, 5, [(0, b"old"), (10, b"first"), (11, second)], end, is_voter=is_voter)


@pytest.mark.parametrize(
    ("rule", "happens"),
    [
        ("one leader", lambda oracle: oracle.leads(TWO, 4)),
        ("may lead", lambda oracle: broken_begin(oracle, 12, b"second", is_voter=False)),
        ("vote", lambda oracle: oracle.voted(TWO, 4, THREE)),
        ("vote", lambda oracle: oracle.voted(TWO, 4, Voter(1, uuid.UUID(int=10)))),
        ("remembered", lambda oracle: oracle.is_in(TWO, 3)),
        ("remembered", lambda oracle: oracle.starts(TWO, 3, None)),
        ("remembered", lambda oracle: oracle.starts(TWO, 4, None)),
        ("remembered", lambda oracle: oracle.starts(TWO, 4, THREE)),
        ("own epoch", lambda oracle: oracle.commits(TWO, [(12, b"more")], 13, led_from=13)),
        ("complete", lambda oracle: broken_begin(oracle, 11, b"second")),
        ("complete", lambda oracle: broken_begin(oracle, 12, b"another")),
        ("committed", lambda oracle: oracle.commits(TWO, [(10, b"another")], 11)),
        ("one change", lambda oracle: oracle.names(12, frozenset({ONE}))),
        ("one change", lambda oracle: oracle.names(12, frozenset({ONE, TWO_ANEW, THREE}))),
    ],
)
def test_a_broken_rule_is_found(rule: str, happens: Callable[[QuorumOracle], object]) -> None:
    with pytest.raises(PromiseBrokenError) as broken:
        happens(seen())
    assert broken.value.rule == rule
