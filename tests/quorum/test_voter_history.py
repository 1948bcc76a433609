"""Who votes, as snapshot and log name them: appended, truncated, begun anew; compared with a log that is read anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.contracts.election import VotersChanged
from odradek.kernel.quorum.voter_history import VoterHistory
from tests.plugins.election_quorum.nodes import voters_of


def history_of(*offsets: int, end_offset: int = 0, of_snapshot: bool = True) -> VoterHistory:
    """A history of one voter more with each record; its snapshot names broker 1."""
    history = VoterHistory()
    history.begin_anew(end_offset, voters_of(1) if of_snapshot else None)
    for count, offset in enumerate(offsets, 2):
        history.add(offset, voters_of(*range(1, count + 1)))
    return history


def test_a_log_that_names_nobody_tells_an_election_nothing() -> None:
    history = VoterHistory()

    assert (history.newest, history.former, history.offset, history.event()) == (None, None, -1, None)


def test_what_the_founding_left_stands_before_the_log() -> None:
    assert history_of().event() == VotersChanged(voters_of(1), -1, None)


def test_what_a_snapshot_names_stands_at_its_last_offset() -> None:
    assert history_of(end_offset=700).event() == VotersChanged(voters_of(1), 699, None)


def test_the_newest_count_and_those_before_are_the_former() -> None:
    assert history_of(4, 9).event() == VotersChanged(voters_of(1, 2, 3), 9, voters_of(1, 2))


def test_what_is_truncated_counts_no_more() -> None:
    history = history_of(4, 9)
    changes = [history.truncate_to(10), history.truncate_to(9), history.truncate_to(0), history.truncate_to(0)]

    assert (changes, history.event()) == ([False, True, True, False], VotersChanged(voters_of(1), -1, None))


def test_a_log_whose_first_voters_are_truncated_names_nobody_again() -> None:
    history = history_of(4, of_snapshot=False)
    history.truncate_to(4)

    assert history.event() is None


def test_each_offset_has_voters_of_its_own() -> None:
    history = history_of(4, 9)

    assert [history.at(offset) for offset in (-1, 3, 4, 8, 9, 100)] == [
        voters_of(1),
        voters_of(1),
        voters_of(1, 2),
        voters_of(1, 2),
        voters_of(1, 2, 3),
        voters_of(1, 2, 3),
    ]


def test_what_a_snapshot_holds_needs_no_history() -> None:
    history = history_of(4, 9)
    history.forget_below(9)

    assert (history.at(3), history.at(8), history.former) == (None, voters_of(1, 2), voters_of(1, 2))
    history.forget_below(10)
    assert history.event() == VotersChanged(voters_of(1, 2, 3), 9, None)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 40)), max_size=20))
def test_a_history_is_that_of_a_log_that_is_read_anew(steps: list[tuple[int, int]]) -> None:
    history, log, end = history_of(), {-1: voters_of(1)}, 0
    for gap, cut in steps:
        history.add(end + gap, voters_of(gap))
        log[end + gap] = voters_of(gap)
        end += gap + 1
        if cut < end:
            history.truncate_to(cut)
            log = {offset: record for offset, record in log.items() if offset < cut}
            end = cut
        newest = max(log)

        assert (history.newest, history.offset) == (log[newest], newest)
        assert [history.at(offset) for offset in range(-1, end)] == [
            log[max(known for known in log if known <= offset)] for offset in range(-1, end)
        ]
