"""A campaign's file, and what is run next: whatever a crash left, no result is lost and no seed left out."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.lab.simulator.campaign import SCENARIOS
from odradek.lab.simulator.campaign_results import HEADER, SEEDS_FOR_COVERAGE, Progress, Result, read_results
from odradek.lab.simulator.variations import VARIATIONS, VOTED, Variation, chosen_variations

APPEND = Variation("append")
VOTING = Variation("delays", VOTED)


def result_of(variation: Variation, seed: int, failure: str = "", code: str = "now", **coverage: int) -> Result:
    return Result(variation, seed, code, f"{seed:x}", failure, (), 60.0, 1.5, coverage)


def jobs_of(progress: Progress) -> list[tuple[Variation, int]]:
    return list(iter(progress.next_job, None))


texts = st.text(max_size=20)
results = st.builds(
    Result,
    variation=st.builds(Variation.of, texts, st.dictionaries(texts, texts, max_size=2)),
    seed=st.integers(0, 1 << 64),
    code=texts,
    trace_hash=texts,
    failure=texts,
    details=st.lists(texts, max_size=2).map(tuple),
    simulated_s=st.floats(0, 1e6),
    wall_s=st.integers(0, 10**6).map(lambda ms: ms / 1000),
    coverage=st.dictionaries(texts, st.integers(0, 1 << 40), max_size=3),
)


@given(st.lists(results, max_size=4))
def test_a_file_says_what_was_written(written: list[Result]) -> None:
    text = HEADER + "".join(result.as_line for result in written)

    assert text.isascii()
    assert read_results(text) == (written, len(text))


@given(st.lists(results, max_size=3), st.data())
def test_of_a_file_that_ends_anywhere_all_whole_lines_are_read(written: list[Result], data: st.DataObject) -> None:
    lines = [HEADER, *(result.as_line for result in written)]
    text = "".join(lines)
    end = data.draw(st.integers(0, len(text)))
    ends = [sum(map(len, lines[: number + 1])) for number in range(len(lines))]
    whole = [place for place in ends if place <= end]

    assert read_results(text[:end]) == (written[: max(0, len(whole) - 1)], whole[-1] if whole else 0)


def test_zeros_that_a_loss_of_power_left_are_taken_for_a_line_that_has_no_end() -> None:
    text = HEADER + result_of(APPEND, 1).as_line

    assert read_results(text + "\0" * 50) == ([result_of(APPEND, 1)], len(text))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("my notes", "line 1: this is no file of a campaign"),
        ("my notes\n", "line 1: this is no file of a campaign"),
        (HEADER.replace("1}", "2}"), "of version 1"),
        (HEADER + "{}\n" + result_of(APPEND, 1).as_line, "line 2: no result of a seed"),
        (HEADER + "[]\n", "line 2: no result of a seed"),
        (HEADER + result_of(APPEND, 1).as_line + "{\n", "line 3: "),
    ],
)
def test_a_file_of_something_else_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_results(text)


def test_a_later_version_may_say_more_of_a_seed() -> None:
    line = result_of(APPEND, 1).as_line.replace('"seed"', '"host": "a", "seed"')

    assert Result.from_line(line) == result_of(APPEND, 1)


# -- what is next ----------------------------------------------------------------------------------------------------


def test_a_seed_of_each_is_run_then_the_next_of_each() -> None:
    progress = Progress([APPEND, VOTING], range(3, 5), "now")

    assert jobs_of(progress) == [(APPEND, 3), (VOTING, 3), (APPEND, 4), (VOTING, 4)]


def test_what_was_run_is_not_run_again() -> None:
    progress = Progress([APPEND, VOTING], range(1, 3), "now")
    for result in (result_of(APPEND, 1, code="then"), result_of(VOTING, 2, "broken")):
        progress.add(result)

    assert jobs_of(progress) == [(VOTING, 1), (APPEND, 2)]


def test_what_failed_with_other_code_is_run_again_before_all_others() -> None:
    progress = Progress([APPEND, VOTING], range(1, 3), "now")
    progress.add(result_of(VOTING, 2, "broken", code="then"))

    assert jobs_of(progress) == [(VOTING, 2), (APPEND, 1), (VOTING, 1), (APPEND, 2)]
    progress.add(result_of(VOTING, 2))
    assert progress.failed == []


def test_a_seed_that_is_not_asked_for_counts_nowhere() -> None:
    progress = Progress([APPEND], range(1, 3), "now")
    progress.add(result_of(APPEND, 3, "broken"))
    progress.add(result_of(VOTING, 1, "broken", code="then"))

    assert jobs_of(progress) == [(APPEND, 1), (APPEND, 2)]
    assert progress.failed == []


@given(
    st.lists(st.builds(result_of, st.sampled_from([APPEND, VOTING]), st.integers(0, 5), st.sampled_from(["", "no"]))),
    st.integers(0, 12),
)
def test_however_often_it_stops_each_seed_has_one_result_in_the_end(before: list[Result], stops_after: int) -> None:
    known = before
    for _ in range(2):
        progress = Progress([APPEND, VOTING], range(6), "now")
        for result in known:
            progress.add(result)
        for variation, seed in jobs_of(progress)[:stops_after]:
            known = [*known, result_of(variation, seed)]
        stops_after = 12
    last = Progress([APPEND, VOTING], range(6), "now")
    for result in known:
        last.add(result)

    assert last.next_job() is None
    assert len(last.results) == last.wanted_count == 12


# -- sums ------------------------------------------------------------------------------------------------------------


def test_what_seeds_exercised_is_summed_up_by_variation() -> None:
    progress = Progress([APPEND, VOTING], range(1, 9), "now")
    for result in (result_of(APPEND, 2, crashes=2), result_of(APPEND, 1, "broken", crashes=1, cuts=0)):
        progress.add(result)
    append, voting = progress.summaries({"append": ["cuts"]})

    assert (append.seeds, append.failed, append.coverage) == (2, [1], {"crashes": 3, "cuts": 0})
    assert (append.simulated_s, append.wall_s, append.missing) == (120.0, 3.0, [])
    assert (voting.seeds, voting.coverage) == (0, {})
    assert append.as_json["scenario"] == "append"
    assert append.as_json["failed"] == [1]


def test_what_many_seeds_never_exercised_is_told() -> None:
    progress = Progress([APPEND], range(SEEDS_FOR_COVERAGE), "now")
    for seed in range(SEEDS_FOR_COVERAGE):
        progress.add(result_of(APPEND, seed, crashes=1, cuts=0))

    assert progress.summaries({"append": ["crashes", "cuts", "pauses"]})[0].missing == ["cuts", "pauses"]


# -- what is run -----------------------------------------------------------------------------------------------------


def test_every_scenario_is_run_and_over_several_brokers_with_both_elections() -> None:
    assert {each.scenario for each in VARIATIONS} == SCENARIOS.keys()
    assert len(set(VARIATIONS)) == len(VARIATIONS)
    voted = {each.scenario for each in VARIATIONS if dict(each.settings) == dict(VOTED)}
    assert voted == {"replication", "spread_transactions", "delays", "retry", "quorum"}


def test_settings_beat_those_of_variations() -> None:
    chosen = chosen_variations(["append", "delays", "mine"], {"odradek.election": "isr"})

    assert [each.title for each in chosen] == [
        "append odradek.election=isr",
        "delays odradek.election=isr",
        "delays odradek.election=isr odradek.internal.election=quorum",
        "mine odradek.election=isr",
    ]
    assert chosen[2].command(7) == (
        "odradek sim --scenario delays --set odradek.election=isr --set odradek.internal.election=quorum --replay 7 -v"
    )


def test_the_order_of_settings_makes_no_other_variation() -> None:
    assert Variation.of("delays", dict(reversed(VOTED))) == VOTING
    assert Result.from_line(attrs.evolve(result_of(VOTING, 1)).as_line).variation == VOTING
