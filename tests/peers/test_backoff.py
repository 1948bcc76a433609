"""The pauses between attempts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.peers.backoff import Backoff


@given(attempts=st.integers(1, 10_000), initial=st.integers(0, 10_000), longest=st.integers(0, 100_000))
def test_a_pause_doubles_with_each_attempt_give_or_take_a_fifth_up_to_the_longest(
    attempts: int, initial: int, longest: int
) -> None:
    plain = min(longest, initial * 2 ** min(attempts - 1, 40))
    pause = Backoff(initial, longest, random.Random(1)).pause_ms(attempts)

    assert int(0.8 * plain) <= pause <= min(longest, 1.2 * plain)


@pytest.mark.parametrize("attempts", [0, -1])
def test_there_is_no_pause_before_the_first_attempt(attempts: int) -> None:
    assert Backoff(100, 1_000, random.Random(1)).pause_ms(attempts) == 0


def test_clients_that_failed_together_do_not_come_back_together() -> None:
    pauses = {Backoff(100, 10_000, random.Random(seed)).pause_ms(3) for seed in range(20)}

    assert len(pauses) > 10
