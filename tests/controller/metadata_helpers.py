"""A controller as these tests want it: one broker, the in-tree election, ids and chance from a seed."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, TypeVar

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import ElectionContext
from odradek.kernel.contracts.log_values import EpochEnd
from odradek.kernel.controller.brokers import Registration
from odradek.kernel.controller.controller import Controller
from odradek.kernel.controller.rules import ControllerRules
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.features import METADATA_VERSION_MAX, supported_ranges
from odradek.kernel.metadata.image import BrokerEndpoint, MetadataImage
from odradek.kernel.types import ZERO_ID
from odradek.kernel.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from odradek.plugins import election_isr

if TYPE_CHECKING:
    from odradek.kernel.contracts.coordinator import CoordinatorResult
    from odradek.kernel.contracts.storage import PartitionLog
    from odradek.kernel.controller.rules import Steps
    from odradek.kernel.metadata.records import MetadataRecord

R = TypeVar("R")

CLUSTER_ID = "Odradek-cluster-000001"


def make_rules(seed: int = 1, **settings: str) -> ControllerRules:
    """Rules with settings given as `num_partitions="4"`."""
    static = {name.replace("_", "."): Setting(text, "test") for name, text in settings.items()}
    return ControllerRules(
        node_id=1,
        config=BrokerConfig(Registry.of(), static=static),
        elections=dict(election_isr.odradek_elections()),
        ids=RandomIds(random.Random(seed)),
        random=random.Random(seed),
    )


def registration(
    broker_id: int = 1,
    *,
    seed: int = 7,
    rack: str | None = None,
    is_fenced: bool = False,
    metadata_version_max: int = METADATA_VERSION_MAX,
) -> Registration:
    ids = RandomIds(random.Random(seed * 1000 + broker_id))
    return Registration(
        broker_id=broker_id,
        incarnation_id=ids.new_id(),
        listeners=[BrokerEndpoint("PLAINTEXT", "localhost", 9090 + broker_id)],
        log_dirs=[RandomIds(random.Random(broker_id)).new_id()],  # disks outlive the processes
        rack=rack,
        is_fenced=is_fenced,
        features=supported_ranges(make_rules(odradek_metadata_version_max=str(metadata_version_max)).config),
    )


class DrivenController:
    """A controller whose records are replayed at once, and kept."""

    def __init__(self, *, brokers: int = 1, seed: int = 1, **settings: str) -> None:
        self.rules = make_rules(seed, **settings)
        self.controller = Controller(image=MetadataImage(), rules=self.rules)
        self.records: list[MetadataRecord] = []
        self.apply(self.controller.format_log(CLUSTER_ID))
        highest = self.rules.config.get_int("odradek.metadata.version.max")
        for broker_id in range(1, brokers + 1):
            self.register(registration(broker_id, metadata_version_max=highest))

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def apply(self, decided: CoordinatorResult[MetadataRecord, R] | Steps[R]) -> R:
        result = run_at_once(decided) if isinstance(decided, Generator) else decided
        level = self.image.metadata_version
        for record in result.records:
            self.keep(record, level)
            self.controller.replay(record)
            self.records.append(record)
            self.controller.note_position(len(self.records) - 1, 0)
        return result.response

    def keep(self, record: MetadataRecord, metadata_version: int) -> None:
        """Take note of a record that is written at this level."""

    def epoch_of(self, broker_id: int) -> int:
        return self.image.brokers[broker_id].broker_epoch

    def register(self, wanted: Registration) -> int:
        """Register a broker and let it serve."""
        epoch = self.apply(self.controller.register_broker(wanted))
        if not wanted.is_fenced:
            self.apply(self.controller.change_broker(wanted.broker_id, epoch, fence=False))
        return epoch

    def alter_isr(self, name: str, partition: int, isr: Sequence[int]) -> AlterPartitionResponse:
        """Have a partition's leader ask for an in-sync set."""
        topic = self.image.topics_by_name[name]
        state = topic.partitions[partition]
        asked = PartitionData(
            partition_index=partition,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=each, broker_epoch=self.epoch_of(each)) for each in isr],
        )
        request = AlterPartitionRequest(
            broker_id=state.leader,
            broker_epoch=self.epoch_of(state.leader),
            topics=[TopicData(topic_id=topic.topic_id, partitions=[asked])],
        )
        response = self.apply(self.controller.decide(request))
        assert isinstance(response, AlterPartitionResponse)
        return response


def context_of(log: PartitionLog) -> ElectionContext:
    """What an election gets to know of a log that it is made for; settings are as by default."""
    return ElectionContext(
        partition=log.partition,
        broker_id=1,
        directory_id=ZERO_ID,
        log_end_offset=log.log_end_offset,
        high_watermark=log.log_start_offset,
        log_end=lambda: EpochEnd(log.latest_epoch, log.log_end_offset),
        hard_state=None,
        config=lambda: BrokerConfig(Registry.of()),
        settings={},
        random=random.Random(0),
        broker=lambda _broker_id: None,
    )
