"""One seed, many streams."""

from __future__ import annotations

import pytest

from odradek.lab.simulator.seeds import FAULTS, NETWORK, STREAMS, Seeds, between, is_chosen


def test_a_stream_gives_the_same_numbers_on_every_python() -> None:
    source = Seeds(7).stream(NETWORK)
    letters = list(range(8))
    source.shuffle(letters)

    # Computed with CPython 3.10, 3.11, 3.12 and 3.13.
    assert letters == [2, 6, 1, 0, 5, 4, 3, 7]
    assert source.random() == 0.25955222109030374
    assert source.getrandbits(40) == 284735780809
    assert source.randrange(1000) == 226
    assert source.choice("abcdef") == "a"


def test_streams_differ_from_each_other_and_between_seeds() -> None:
    first = {name: Seeds(1).stream(name).getrandbits(64) for name in STREAMS}
    second = {name: Seeds(2).stream(name).getrandbits(64) for name in STREAMS}

    assert len({*first.values(), *second.values()}) == 2 * len(STREAMS)


def test_a_draw_more_in_one_stream_changes_no_other() -> None:
    seeds = Seeds(3)
    undisturbed = seeds.stream(NETWORK).getrandbits(64)
    seeds.stream(FAULTS).getrandbits(64)

    assert seeds.stream(NETWORK).getrandbits(64) == undisturbed


def test_a_stream_is_split_further_by_names() -> None:
    seeds = Seeds(3)

    assert seeds.stream(NETWORK, "a").getrandbits(64) != seeds.stream(NETWORK, "b").getrandbits(64)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 1000)])
def test_never_and_always_are_exact(share: float, expected: int) -> None:
    source = Seeds(3).stream(FAULTS)

    assert sum(is_chosen(source, share) for _ in range(1000)) == expected


def test_between_gives_both_ends_and_more_of_the_lower_one() -> None:
    source = Seeds(3).stream(FAULTS)
    drawn = [between(source, 10, 13) for _ in range(1000)]

    assert {*drawn} == {10, 11, 12}
    assert drawn.count(10) > 500
