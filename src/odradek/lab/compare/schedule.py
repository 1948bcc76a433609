"""Pure core: in which order combinations run.

Rounds interleave, so that a machine that gets slower (heat, a neighbour, a disk that fills) is as unfair to one
combination as to another; each round begins with another combination, and every second one goes backwards, so that
none always runs behind the same one.
"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def interleaved(combinations: list[T], rounds: int) -> list[tuple[int, T]]:
    """Return every combination once for each round, with the round's number from 0.

    Args:
        combinations: In the order of the report.
        rounds: How many, >= 1.
    """
    planned: list[tuple[int, T]] = []
    for number in range(rounds):
        begin = number % max(len(combinations), 1)
        turned = combinations[begin:] + combinations[:begin]
        planned += [(number, combination) for combination in (turned[::-1] if number % 2 else turned)]
    return planned
