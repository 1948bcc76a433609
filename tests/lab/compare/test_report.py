"""Medians, ranges, what can be said of them, and how they are written."""

from __future__ import annotations

import itertools
import json
import math

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from odradek.lab.compare.figures import ALL, BY_NAME, ROUNDS_MIN, Group, Spread, Unit, chance_apart
from odradek.lab.compare.findings import FINDINGS_MAX, findings, is_better
from odradek.lab.compare.quantities import column_scale, number_text, quantity_text, round_text, spread_text
from tests.lab.compare.results import combination, figures, report, usual_report

VALUES = st.lists(st.floats(0, 1e12), min_size=1, max_size=9)


def test_figures_have_names_of_their_own_and_say_what_they_are() -> None:
    assert len(BY_NAME) == len(ALL)
    assert all(figure.text and figure.title for figure in ALL)
    assert {figure.group for figure in ALL} == set(Group)


@given(VALUES)
def test_the_median_lies_in_the_range(values: list[float]) -> None:
    spread = Spread(tuple(values))

    assert spread.low <= spread.median <= spread.high
    assert sum(value <= spread.median for value in values) >= len(values) / 2 or len(values) % 2 == 0


def test_the_median_is_the_middle_one() -> None:
    assert Spread((9.0, 1.0, 5.0)).median == 5
    assert Spread((9.0, 1.0, 5.0, 6.0)).median == 5.5


def test_what_is_not_known_is_left_out() -> None:
    assert Spread.of([None, 3.0, None]) == Spread((3.0,))
    assert Spread.of([None]) is None


@given(VALUES, VALUES)
def test_two_are_apart_where_their_ranges_do_not_touch(one: list[float], other: list[float]) -> None:
    assume(len(one) >= ROUNDS_MIN and len(other) >= ROUNDS_MIN)
    left, right = Spread(tuple(one)), Spread(tuple(other))

    assert left.is_apart_from(right) == (max(one) < min(other) or max(other) < min(one))
    assert left.is_apart_from(right) == right.is_apart_from(left)


def test_few_rounds_say_nothing_of_differences() -> None:
    assert not Spread((1.0, 2.0)).is_apart_from(Spread((5.0, 6.0, 7.0)))
    assert Spread((1.0, 2.0, 1.0)).is_apart_from(Spread((5.0, 6.0, 7.0)))


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_how_often_the_same_are_apart_by_chance(rounds: int) -> None:
    places = list(itertools.combinations(range(2 * rounds), rounds))
    apart = [some for some in places if max(some) < rounds or min(some) >= rounds]

    assert chance_apart(rounds) == pytest.approx(min(len(set(apart)) / len(places), 1.0))


def test_better_is_more_throughput_and_less_of_the_rest() -> None:
    few, many = Spread((1.0, 2.0, 2.0)), Spread((3.0, 4.0, 4.0))

    assert is_better(BY_NAME["produce_records"], many, few) is True
    assert is_better(BY_NAME["ack_p99"], many, few) is False
    assert is_better(BY_NAME["produced"], many, few) is None
    assert is_better(BY_NAME["ack_p99"], Spread((1.0, 3.0, 3.0)), few) is None


def test_a_figure_is_called_by_its_name_without_its_unit() -> None:
    assert [BY_NAME[name].words for name in ("unavailable_s", "p99_ms", "ack_p99")] == ["unavailable", "p99", "ack p99"]


def test_the_largest_differences_are_told_at_most_two_a_combination() -> None:
    found = findings(usual_report())

    assert [finding.row.combination.label for finding in found] == ["memory · delete"] * 2
    assert 0 < len(found) <= FINDINGS_MAX
    assert found[0].text == "memory · delete: produce records 200/s, 2 times the 100/s of segment · delete"
    assert found[0].figure is not found[1].figure


def test_differences_within_the_range_are_not_told() -> None:
    wide = [figures(0.5), figures(3.0), figures(1.0)]

    assert not findings(report((combination("a"), wide, ""), (combination("b"), [figures(2.0)] * 3, "")))
    assert not findings(report())


def test_small_differences_are_not_told_even_if_they_are_real() -> None:
    rows = [(combination(name), [figures(factor)] * 3, "") for name, factor in (("a", 1.0), ("b", 1.1))]

    assert not findings(report(*rows))


def test_losses_and_failures_are_told() -> None:
    lossy = report((combination("memory"), [figures(), figures(lost=3.0, wrong=1.0)], ""))

    assert lossy.losses == ["memory: 3 acknowledged records lost, 1 wrong, while the broker lived"]
    assert usual_report().losses == []
    assert usual_report().failures == ["zzz · <b>: the broker did not start"]


def test_the_report_says_what_its_ranges_are_worth() -> None:
    assert "one of 10 figures" in usual_report().about_ranges
    assert "Too few rounds" in report((combination("a"), [figures()] * 2, "")).about_ranges
    assert "hardly any figure" in report((combination("a"), [figures()] * 1000, "")).about_ranges


def test_rounds_that_were_not_run_are_not_told_as_run() -> None:
    assert report((combination("a"), [figures()] * 2, "")).rounds_text == "2 rounds of 3"
    assert usual_report().rounds_text == "3 rounds"
    assert report().rounds_text == "0 rounds of 3"


def test_all_figures_are_in_the_json() -> None:
    read = json.loads(json.dumps(usual_report().as_json(), allow_nan=False))
    first, second, third = read["combinations"]

    assert first["varied"] == {"odradek.storage": "segment", "cleanup.policy": "delete"}
    assert first["figures"]["disk"] == {"median": 100, "min": 90, "max": 110, "values": [90, 100, 110]}
    assert second["figures"]["store"]["values"] == [220, 190]
    assert (third["failed"], third["notes"], third["figures"]["disk"]) == ("the broker did not start", ["a note"], None)
    assert {figure["name"] for figure in read["figures"]} == set(first["figures"])
    assert read["workload"]["toml"].startswith('name = "mine"')


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (48_123, Unit.RECORDS_PER_S, "48.1k/s"),
        (999.6, Unit.RECORDS_PER_S, "1.00k/s"),
        (3_522_602, Unit.BYTES_PER_S, "3.52 MB/s"),
        (0, Unit.BYTES, "0 B"),
        (512, Unit.BYTES, "512 B"),
        (2e15, Unit.BYTES, "2.00 PB"),
        (5e18, Unit.BYTES, "5,000 PB"),
        (1_234.5, Unit.MILLISECONDS, "1,234 ms"),
        (0.0123, Unit.SECONDS, "0.012 s"),
        (1.066, Unit.TIMES, "1.07x"),
        (40_500, Unit.COUNT, "40,500"),
        (0.25, Unit.MICROSECONDS, "0.25 µs"),
    ],
)
def test_quantities_have_three_digits_and_a_unit(value: float, unit: Unit, text: str) -> None:
    assert quantity_text(value, unit) == text


def test_round_numbers_stay_round() -> None:
    told = [
        round_text(value, unit) for value, unit in ((5_000, Unit.RECORDS_PER_S), (0.2, Unit.SECONDS), (0, Unit.BYTES))
    ]

    assert told == ["5k/s", "0.2 s", "0 B"]


def test_a_column_has_one_scale() -> None:
    divisor, unit = column_scale([Spread((12_000.0,)), None, Spread((3_400_000.0,))], Unit.BYTES)

    assert (divisor, unit) == (1e6, "MB")
    assert spread_text(Spread((12_000.0, 14_000.0)), Unit.BYTES, divisor) == "0.013 (0.012-0.014)"
    assert spread_text(None, Unit.BYTES, divisor) == "-"
    assert column_scale([], Unit.MILLISECONDS) == (1.0, "ms")


@given(st.floats(0, 1e15))
def test_a_number_is_read_as_what_it_is_to_two_digits(value: float) -> None:
    read = float(number_text(value).replace(",", ""))

    assert math.isclose(read, value, rel_tol=0.06, abs_tol=1e-300)


def test_a_row_is_read_against_the_first_of_its_own_fault() -> None:
    rows = [
        (attrs.evolve(combination(name), fault=fault), [figures(factor * more) for more in (0.9, 1.0, 1.1)], "")
        for fault, factors in (("none", (1.0, 2.0)), ("leader-killed", (10.0, 30.0)))
        for name, factor in zip(("isr", "quorum"), factors, strict=True)
    ]
    told = [finding.text for finding in findings(report(*rows))]

    assert "quorum · leader-killed: produce records 3.00k/s, 3 times the 1.00k/s of isr · leader-killed" in told
    assert "quorum · none: produce records 200/s, 2 times the 100/s of isr · none" in told
