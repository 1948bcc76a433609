"""The hash of a group's topics: XXH3's own vectors, and what Apache Kafka wrote."""

from __future__ import annotations

import uuid

import pytest

from odradek.kernel.api import TopicView
from odradek.plugins.groups.consumer.topics_hash import HASHED_AT_ONCE_MAX, TopicHashes, hash_topic
from odradek.plugins.groups.consumer.xxh3 import xxh3_64

from ..group_broker import Topics
from .driven_consumers import DrivenConsumers
from .kafkas_records import GOLDEN_HASHES, topic_views

VECTORS = {
    # length: the hash of the bytes (131 i + 7) mod 256; computed with xxhash 4.1.0 (XXH3_64bits), 2026-11-21
    0: 3244421341483603138,
    1: 5502495245947142431,
    3: 7943829059066201772,
    4: 6650799683851767871,
    8: -433104430451296011,
    9: 8944394699905593055,
    16: -8742622969447446440,
    17: -5364924204495744911,
    128: 1211889905577015873,
    129: 1605741916052902306,
    240: -5273803999686196762,
    241: -7679571566553258082,
    1024: 8123710315364152507,
    1025: 7405123385822357415,
    3000: 3720116794508197388,
}


@pytest.mark.parametrize(("length", "expected"), VECTORS.items())
def test_xxh3_gives_the_vectors_of_its_own_library(length: int, expected: int) -> None:
    assert expected == xxh3_64(bytes((131 * index + 7) & 255 for index in range(length)))


@pytest.mark.parametrize(("names", "expected"), GOLDEN_HASHES.items())
def test_a_groups_hash_is_the_one_that_apache_kafka_wrote(names: tuple[str, ...], expected: int) -> None:
    topics = Topics({})
    for view in topic_views():
        topics.create(view.name, view.partitions_count, view.topic_id)

    assert expected == TopicHashes().of_group((*names, "missing"), topics)


def test_racks_count() -> None:
    def hashed(*racks: frozenset[str]) -> int:
        return hash_topic(TopicView("t", uuid.UUID(int=1), 2, racks))

    nowhere = hashed()
    here = hashed(frozenset({"ab", "c"}), frozenset())

    assert nowhere == hashed(frozenset(), frozenset())
    assert here == hashed(frozenset({"c", "ab"}), frozenset())
    assert (
        len({nowhere, here, hashed(frozenset({"a", "bc"}), frozenset()), hashed(frozenset(), frozenset({"ab", "c"}))})
        == 4
    )


def test_a_known_hash_is_kept_until_the_topic_changes() -> None:
    topics = Topics({"t": 1})
    hashes = TopicHashes()
    first = hashes.of_group(["t"], topics)
    topics.create("t", 2)

    assert first == hashes.of_group(["t"], topics)

    hashes.topics_changed(["t"])

    assert first != hashes.of_group(["t"], topics)
    assert hashes.of_group([], topics) == 0


def test_very_many_new_topics_are_hashed_some_at_a_time() -> None:
    wide = HASHED_AT_ONCE_MAX // 2
    names = ["a", "b", "c", "d", "e"]
    topics = Topics(dict.fromkeys(names, wide))
    hashes, found, seen = TopicHashes(), [], -1
    while hashes.has_changed_since(seen, names):
        seen = hashes.changes_count
        found.append(hashes.of_group(names, topics))

    assert len(found) == len(set(found)) == 3
    assert whole_hash(names, topics) == found[-1]


def test_a_group_of_very_many_topics_ends_with_their_whole_hash() -> None:
    names = ["a", "b", "c", "d", "e"]
    driven = DrivenConsumers({}, dict.fromkeys(names, HASHED_AT_ONCE_MAX // 2))
    epochs = [driven.enter("m", *names).response.member_epoch]
    for _ in range(6):
        driven.harness.advance(1)
        epochs.append(driven.beat("m", epochs[-1]).response.member_epoch)

    assert driven.group.metadata_hash == whole_hash(names, driven.broker.cluster)
    assert driven.group.state_name == "Stable"
    assert driven.group.group_epoch == epochs[-1] == 3


def whole_hash(names: list[str], topics: Topics) -> int:
    hashes = TopicHashes()
    for name in names:
        hashes.of_group([name], topics)
    return hashes.of_group(names, topics)
