"""What a broker does with its replicas when the committed metadata changes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.kernel.broker.parts import BrokerParts
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.partitions.topic_plan import TopicPlan
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from odradek.kernel.wire.messages.api_37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

from .broker_beside import broker_with, work_beside


async def create(parts: BrokerParts, name: str, partitions: int) -> None:
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    await parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000))


def test_a_change_of_one_partition_concerns_no_other_of_its_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, list[int]]] = []

    async def scenario(parts: BrokerParts) -> None:
        await create(parts, "orders", 3)
        await create(parts, "others", 2)
        open_topic = parts.logs.lifecycle.open_topic

        def note(name: str, topic_id: uuid.UUID, plan: TopicPlan, partitions: Mapping[int, PartitionState]) -> None:
            given.append((name, sorted(partitions)))
            open_topic(name, topic_id, plan, partitions)

        monkeypatch.setattr(parts.logs.lifecycle, "open_topic", note)
        more = CreatePartitionsTopic(name="orders", count=5, assignments=None)
        request = CreatePartitionsRequest(topics=[more], timeout_ms=30_000)
        await parts.metadata.log.submit(lambda controller, _now_ms: controller.decide(request))

        assert sorted(parts.logs.replicas.topics["orders"].partitions) == [0, 1, 2, 3, 4]

    work_beside([f"log.dirs={tmp_path}"], scenario)

    assert given == [("orders", [3, 4])]


async def test_a_plugin_that_asks_before_the_metadata_was_read_finds_an_empty_cluster(tmp_path: Path) -> None:
    broker = broker_with([f"log.dirs={tmp_path}"])
    view = BrokerParts(broker.options, broker.machine).view

    assert (view.cluster_id, list(view.cluster.topic_names())) == ("", [])
