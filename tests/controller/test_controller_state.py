"""The controller against a naive model, under any sequence of operations."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.controller.snapshots import SnapshotId, decode_snapshot, encode_snapshot
from odradek.kernel.metadata.features import METADATA_VERSION_MAX
from odradek.kernel.metadata.image import MetadataImage, is_reassigned
from odradek.kernel.metadata.image_builder import ImageBuilder
from odradek.kernel.metadata.records import decode_record, encode_record

from .controller_requests import (
    BROKER,
    TOPIC,
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter,
    reassign_partitions,
    topic,
)
from .metadata_helpers import DrivenController, registration

NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "e"])
KEYS = st.sampled_from(["retention.ms", "segment.ms", "flush.ms"])


class ControllerMachine(RuleBasedStateMachine):
    """The model: names to partition counts, configs, registered brokers; nothing of records or images."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: dict[str, int] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.live: set[int] = set()
        self.epochs: dict[int, int] = {}
        self.leader_epochs: dict[Any, int] = {}

    @initialize(brokers=st.integers(1, 3), seed=st.integers(0, 5))
    def start(self, brokers: int, seed: int) -> None:
        self.driven = DrivenController(brokers=brokers, seed=seed)
        self.live = set(range(1, brokers + 1))
        self.epochs = {number: self.driven.image.brokers[number].broker_epoch for number in self.live}

    @rule(name=NAMES, count=st.integers(1, 4), factor=st.integers(1, 3))
    def create(self, name: str, count: int, factor: int) -> None:
        response = self.driven.apply(self.driven.controller.decide(create_topics(topic(name, count, factor))))
        alike = any(name.replace(".", "_") == other.replace(".", "_") for other in self.topics)
        expected = not alike and bool(self.live) and factor <= len(self.epochs)

        assert expected == (response.topics[0].error_code == 0)
        if expected:
            self.topics[name] = count

    @rule(name=NAMES, count=st.integers(0, 6))
    def grow(self, name: str, count: int) -> None:
        response = self.driven.apply(self.driven.controller.decide(create_partitions((name, count, None))))
        fits = name in self.topics and count > self.topics[name] and bool(self.live)
        factor = len(self.driven.image.topics_by_name[name].partitions[0].replicas) if name in self.topics else 0
        expected = fits and factor <= len(self.epochs)

        assert expected == (response.results[0].error_code == 0)
        if expected:
            self.topics[name] = count

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        response = self.driven.apply(self.driven.controller.decide(delete_topics(name)))

        assert (name in self.topics) == (response.responses[0].error_code == 0)
        self.topics.pop(name, None)
        self.configs.pop(name, None)

    @rule(name=NAMES, key=KEYS, value=st.integers(1, 9))
    def configure(self, name: str, key: str, value: int) -> None:
        request = incremental_alter((TOPIC, name, [(key, 0, str(value))]))
        response = self.driven.apply(self.driven.controller.decide(request))

        assert (name in self.topics) == (response.responses[0].error_code == 0)
        if name in self.topics:
            self.configs.setdefault(name, {})[key] = str(value)

    @rule(name=NAMES, key=KEYS)
    def unset(self, name: str, key: str) -> None:
        request = incremental_alter((TOPIC, name, [(key, 1, None)]), (BROKER, "", [("log.flush.interval.ms", 1, None)]))
        self.driven.apply(self.driven.controller.decide(request))
        self.configs.get(name, {}).pop(key, None)

    @rule(number=st.integers(1, 3))
    def fence(self, number: int) -> None:
        if number in self.live:
            self.driven.apply(self.driven.controller.change_broker(number, self.epochs[number], fence=True))
            self.live.discard(number)

    @rule(number=st.integers(1, 3), seed=st.integers(10, 99))
    def restart(self, number: int, seed: int) -> None:
        if number in self.epochs and number not in self.live:
            self.epochs[number] = self.driven.register(registration(number, seed=seed))
            self.live.add(number)

    @rule(name=NAMES, wanted=st.none() | st.lists(st.integers(1, 3), min_size=1, max_size=3, unique=True))
    def reassign(self, name: str, wanted: list[int] | None) -> None:
        before = self.partitions_of(name)
        request = reassign_partitions(*((name, index, wanted) for index in range(len(before))))
        response = self.driven.apply(self.driven.controller.decide(request))

        for old, new, topics in zip(before, self.partitions_of(name), response.responses, strict=True):
            (answer,) = topics.partitions
            assert answer.error_code == 0 or old == new
            if wanted is None:
                assert answer.error_code or not is_reassigned(new)
            elif answer.error_code == 0:
                assert new.replicas == (*wanted, *new.removing_replicas)

    @rule(name=NAMES, caught_up=st.sets(st.integers(1, 3)))
    def catch_up(self, name: str, caught_up: set[int]) -> None:
        """Leaders say that these replicas are in sync, and no others but themselves."""
        for index, state in enumerate(self.partitions_of(name)):
            if state.leader == -1:
                continue
            isr = [each for each in state.replicas if each in {*(caught_up & self.live), state.leader}]
            self.driven.alter_isr(name, index, isr)

            assert not is_reassigned(self.partitions_of(name)[index]) or set(isr) != set(state.replicas)

    def partitions_of(self, name: str) -> Sequence[PartitionState]:
        return self.driven.image.topics_by_name[name].partitions if name in self.topics else ()

    @invariant()
    def the_image_is_what_the_model_says(self) -> None:
        image = self.driven.image

        assert self.topics == {name: len(topic.partitions) for name, topic in image.topics_by_name.items()}
        assert list(image.topics_by_name.values()) == sorted(
            image.topics_by_id.values(), key=lambda topic: list(image.topics_by_name).index(topic.name)
        )
        assert {name: dict(values) for (kind, name), values in image.configs.items() if kind == TOPIC} == {
            name: values for name, values in self.configs.items() if values
        }
        assert sorted(self.live) == image.live_brokers()

    @invariant()
    def leaders_are_alive_and_in_sync_and_epochs_never_go_back(self) -> None:
        for topic_image in self.driven.image.topics_by_id.values():
            for index, state in enumerate(topic_image.partitions):
                assert state.leader == -1 or (state.leader in self.live and state.leader in state.isr)
                assert state.leader != -1 or not self.live & set(state.isr)
                assert state.isr or state.eligible_leader_replicas or state.last_known_elr
                assert state.leader != -1 or state.isr or not self.live & set(state.eligible_leader_replicas)
                assert set(state.isr) | set(state.eligible_leader_replicas) <= set(state.replicas)
                assert set(state.last_known_elr) <= set(state.replicas)
                assert {*state.adding_replicas, *state.removing_replicas} <= set(state.replicas)
                assert set(state.removing_replicas) != set(state.replicas)
                assert len(topic_image.directories[index]) == len(state.replicas)
                key = (topic_image.topic_id, index)
                assert self.leader_epochs.get(key, 0) <= state.leader_epoch
                self.leader_epochs[key] = state.leader_epoch

    @invariant()
    def records_and_snapshots_give_the_same_image(self) -> None:
        image = self.driven.image
        builder = ImageBuilder(MetadataImage())
        for record in self.driven.records:
            builder.replay(decode_record(encode_record(record, METADATA_VERSION_MAX)))
        builder.note_position(image.offset, image.epoch)
        half = len(self.driven.records) // 2
        snapshot = ImageBuilder(MetadataImage())
        for record in self.driven.records[:half]:
            snapshot.replay(record)
        snapshot.note_position(half - 1, 0)
        data = encode_snapshot(snapshot.build(), 0)
        resumed = ImageBuilder(decode_snapshot(data, "here", SnapshotId(half, 0)).image)
        for record in self.driven.records[half:]:
            resumed.replay(record)
        resumed.note_position(image.offset, image.epoch)

        assert image == builder.build()
        assert image == resumed.build()


ControllerMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestController = ControllerMachine.TestCase


def test_one_seed_makes_the_same_records() -> None:
    def run() -> list[bytes]:
        driven = DrivenController(brokers=3, seed=5)
        driven.apply(driven.controller.decide(create_topics(topic("a", 6, 2), topic("b", 3, 3))))
        return [encode_record(record, METADATA_VERSION_MAX) for record in driven.records]

    assert run() == run()


def test_an_image_shares_what_did_not_change() -> None:
    driven = DrivenController()
    driven.apply(driven.controller.decide(create_topics(*(topic(f"t{number}", 3) for number in range(50)))))
    before = driven.image
    driven.apply(driven.controller.decide(create_partitions(("t7", 4, None))))
    after = driven.image

    assert len(before.topics_by_name["t7"].partitions) == 3
    assert before.topics_by_name["t8"] is after.topics_by_name["t8"]
    assert before.topics_by_name["t7"].partitions[0] is after.topics_by_name["t7"].partitions[0]
    assert before.configs is after.configs


def test_chance_decides_where_the_first_leader_is() -> None:
    leaders = set()
    for seed in range(20):
        driven = DrivenController(brokers=3, seed=random.Random(seed).randrange(1000))
        driven.apply(driven.controller.decide(create_topics(topic("a"))))
        leaders.add(driven.image.topics_by_name["a"].partitions[0].leader)

    assert {1, 2, 3} == leaders
