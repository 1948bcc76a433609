"""When what failed is tried again, and what a removal may take."""

from __future__ import annotations

import random

from odradek.plugins.storage_tiered.removals import Removal, RetryPauses, Track


def pauses_of(track: Track, pauses: RetryPauses, count: int) -> list[int]:
    found = []
    for now_ms in range(1_000, 1_000 + count):
        track.try_later(now_ms=now_ms, pauses=pauses, random=random.Random(now_ms))
        found.append(track.due_ms - now_ms)
    return found


def test_each_failure_of_a_row_doubles_the_pause_up_to_a_limit() -> None:
    track, pauses = Track(), RetryPauses(500, 30_000, 0.0)

    assert pauses_of(track, pauses, 8) == [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
    assert pauses_of(track, pauses, 100) == [30_000] * 100
    assert track.failures == 108

    track.failures = 0
    assert pauses_of(track, pauses, 1) == [500]


def test_pauses_differ_by_their_jitter_and_no_more() -> None:
    found = pauses_of(Track(failures=20), RetryPauses(500, 10_000, 0.2), 200)

    assert all(8_000 <= pause <= 12_000 for pause in found)
    assert min(found) < 8_500
    assert max(found) > 11_500


def test_what_was_switched_off_goes_for_good_when_its_topic_is_gone_for_long_in_one_go() -> None:
    removal = Removal(is_switched_off=True)

    def is_for_good(now_ms: int, *, is_known: bool) -> bool:
        return removal.is_for_good(is_known=is_known, now_ms=now_ms, grace_ms=100)

    assert not is_for_good(0, is_known=False)
    assert not is_for_good(99, is_known=False)
    assert not is_for_good(100, is_known=True)
    assert not is_for_good(150, is_known=False)
    assert is_for_good(250, is_known=False)
    assert Removal(is_switched_off=False).is_for_good(is_known=True, now_ms=0, grace_ms=100)
