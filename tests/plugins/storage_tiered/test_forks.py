"""Logs that went another way than what was sent to the store: what of that stays theirs, and what they abandon."""

from __future__ import annotations

import attrs
import pytest

from odradek.plugins.storage_tiered.forks import LogWay, on_own_way
from odradek.plugins.storage_tiered.manifest import Manifest, StoredSegment, decode_manifest, encode_manifest
from tests.plugins.storage_tiered.manifest_values import bounds, manifest, segment


def sent(base_offset: int, next_offset: int, *epochs: tuple[int, int], uid: str = "") -> StoredSegment:
    return attrs.evolve(segment(base_offset, next_offset, uid), leader_epochs=epochs or ((1, base_offset),))


def abandoned(made: Manifest) -> list[str]:
    return [each.uid for each in made.abandoned]


FIRST_WAY = manifest(sent(0, 10), sent(10, 20), sent(20, 30), version=4)
"""All of it was sent in epoch 1."""


def test_what_a_log_has_as_a_whole_stays_and_all_behind_it_is_abandoned() -> None:
    own = on_own_way(FIRST_WAY, LogWay([(1, 0), (3, 17)], 0, 0, 40))
    assert own is not None

    assert (bounds(own), abandoned(own)) == ([(0, 10)], ["uid-10", "uid-20"])
    assert (own.version, own.log_start_offset, own.leader_epoch) == (4, 0, FIRST_WAY.leader_epoch)


def test_a_log_that_only_ends_earlier_keeps_what_lies_below_its_end() -> None:
    own = on_own_way(FIRST_WAY, LogWay([(1, 0)], 0, 0, 20))
    assert own is not None

    assert (bounds(own), abandoned(own)) == ([(0, 10), (10, 20)], ["uid-20"])


def test_a_log_that_ends_below_all_that_was_not_deleted_begins_there() -> None:
    deleted = manifest(sent(20, 30), log_start_offset=25)
    own = on_own_way(deleted, LogWay([(1, 0)], 0, 0, 15))
    assert own is not None

    assert (own.log_start_offset, bounds(own), abandoned(own)) == (15, [], ["uid-20"])


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(LogWay([(2, 0)], 0, 0, 40), id="begun anew, in a later epoch"),
        pytest.param(LogWay([(1, 0), (3, 17)], 0, 20, 40), id="what it had there alone is another log's"),
        pytest.param(
            LogWay([(1, 0), (3, 17)], 0, 15, 40), id="its local part begins in the midst of what is abandoned"
        ),
        pytest.param(LogWay([(1, 0)], 0, 35, 40), id="what it had there alone is gone"),
    ],
)
def test_nothing_is_abandoned_for_a_log_that_would_have_a_hole_or_has_nothing_in_common(way: LogWay) -> None:
    assert on_own_way(FIRST_WAY, way) is None


def test_who_went_the_first_way_takes_up_what_was_abandoned() -> None:
    second = on_own_way(FIRST_WAY, LogWay([(1, 0), (3, 17)], 0, 0, 40))
    assert second is not None
    second = second.with_segment(sent(10, 25, (1, 10), (3, 17), uid="second"))
    first = on_own_way(second, LogWay([(1, 0), (5, 33)], 0, 20, 40))
    assert first is not None

    assert (bounds(first), abandoned(first)) == (bounds(FIRST_WAY), ["second"])
    assert set(first.object_names()) == set(second.object_names())


def test_what_is_abandoned_is_stored_and_goes_once_the_log_begins_behind_it() -> None:
    made = attrs.evolve(FIRST_WAY, segments=(sent(0, 40, uid="own"),), abandoned=FIRST_WAY.segments)

    assert decode_manifest(encode_manifest(made), "it") == made
    assert abandoned(made.without_below(20)) == ["uid-20"]
    assert list(made.without_anything().object_names()) == []
    assert b"abandoned" not in encode_manifest(FIRST_WAY), "of a log that went one way nothing is said"
