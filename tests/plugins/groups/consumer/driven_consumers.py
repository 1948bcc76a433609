"""A shard of groups in a harness, and members of the consumer protocol, who remember their epochs and what they own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.kernel.api import MetadataChange
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from odradek.kernel.wire.messages.consumer_protocol import encode_subscription, new_subscription
from odradek.plugins.assignors import odradek_assignors
from odradek.plugins.groups.consumer.group import ConsumerGroup
from odradek.plugins.groups.group import Caller
from odradek.testing.shard_harness import RecordingWaiter, ShardHarness

from ..driven import CLIENT, GROUP, DrivenGroups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.wire.messages.api_69_consumer_group_describe import DescribedGroup
    from odradek.plugins.groups.shard import GroupShard

AT_ONCE = {"group.consumer.assignment.interval.ms": 0, "group.initial.rebalance.delay.ms": 0}
VERSION = 1


class DrivenConsumers(DrivenGroups):
    """A shard, and the requests of its clients; see `DrivenGroups` for members of the classic protocol."""

    def __init__(self, settings: Mapping[str, Any] | None = None, topics: Mapping[str, int] | None = None) -> None:
        super().__init__({**AT_ONCE, **(settings or {})}, topics)
        self.broker.assignors = odradek_assignors()
        self.group_configs: dict[str, str] = {}
        self.broker.cluster.group_configs = lambda group_id: self.group_configs  # type: ignore[method-assign] # a test's own
        self.harness = ShardHarness.of(self.coordinator, snapshot=hard_state)

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.context.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def epoch_of(self, name: str) -> int:
        """Return a member's epoch as the coordinator knows it."""
        return self.group.members[self.member_ids.get(name, name)].member_epoch

    def partitions(self, owned: Mapping[str, Sequence[int]]) -> list[TopicPartitions]:
        """Return partitions by topic name as requests have them."""
        views = {topic: self.broker.cluster.topic(topic) for topic in owned}
        return [
            TopicPartitions(topic_id=view.topic_id, partitions=list(owned[topic]))
            for topic, view in views.items()
            if view is not None
        ]

    def names(self, topics: Sequence[Any]) -> dict[str, list[int]]:
        """Return partitions by topic name, `gone` for topics that are not there any more."""
        views = {topic.topic_id: self.broker.cluster.topic_by_id(topic.topic_id) for topic in topics}
        return {
            view.name if (view := views[topic.topic_id]) is not None else "gone": list(topic.partitions)
            for topic in topics
        }

    def beat(self, name: str, epoch: int, *, version: int = VERSION, **fields: Any) -> RecordingWaiter:
        """Send a heartbeat; a request is its own even when two are alike."""
        request = ConsumerGroupHeartbeatRequest(
            **{"group_id": GROUP, "member_id": self.member_ids.get(name, name), "member_epoch": epoch, **fields}
        )
        caller = Caller(CLIENT, "/127.0.0.1", version)
        return self.harness.run(lambda shard, now_ms: shard.consumer.consumer_heartbeat(request, caller, now_ms))

    def enter(self, name: str, *topics: str, **fields: Any) -> RecordingWaiter:
        """Join with the consumer protocol."""
        return self.beat(
            name,
            0,
            **{
                "rebalance_timeout_ms": 60_000,
                "subscribed_topic_names": list(topics),
                "topic_partitions": [],
                **fields,
            },
        )

    def join_classic(
        self,
        name: str,
        topics: Sequence[str],
        *,
        owned: Mapping[str, Sequence[int]] | None = None,
        instance_id: str | None = None,
        version: int = 9,
        protocol: str = "cooperative-sticky",
        protocol_type: str = "consumer",
        metadata: bytes | None = None,
        protocols: Sequence[tuple[str, bytes]] = (),
    ) -> RecordingWaiter:
        """Join with the classic protocol, telling what is owned, or by several protocols and what is said for each."""
        told = encode_subscription(new_subscription(topics, owned=owned or {})) if metadata is None else metadata
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id=self.member_ids.get(name, ""),
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols or ((protocol, told),)
            ],
        )
        waiter = RecordingWaiter()
        caller = Caller(CLIENT, "/127.0.0.1", version)
        self.harness.submit(lambda shard, now_ms: shard.join(request, caller, waiter, now_ms), waiter)
        if waiter.is_done and waiter.error is None:
            self.learn(name, waiter.response)
        return waiter

    def describe(self, group: str = GROUP) -> DescribedGroup:
        (described,) = self.harness.run(lambda shard, _: shard.consumer.describe([group])).response
        assert described.group_id == group
        return described  # type: ignore[no-any-return] # a waiter takes any response

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, or give one more partitions, and tell the shard."""
        known = self.broker.cluster.topic(name)
        self.broker.cluster.version += 1
        self.broker.cluster.create(name, partitions, known.topic_id if known is not None else None)
        names = frozenset((name,))
        changed = MetadataChange(changed_topics=names) if known else MetadataChange(created_topics=names)
        self.harness.run(lambda shard, now_ms: shard.metadata_changed(changed, now_ms))

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and tell the shard."""
        self.broker.cluster.version += 1
        change = MetadataChange(deleted_topics=(self.broker.cluster.delete(name),))
        self.harness.run(lambda shard, now_ms: shard.metadata_changed(change, now_ms))


def hard_state(shard: GroupShard) -> object:
    """Return what a shard that is loaded from the log has in common with the one that wrote it."""
    offsets = {key[:3]: (key[3].offset, key[3].commit_timestamp) for key in shard.offsets.committed()}
    groups = {group.group_id: consumer_state(group) for group in shard.consumer.groups()}
    return offsets, sorted(shard.context.groups), groups


def consumer_state(group: ConsumerGroup) -> object:
    """Return everything of a group that is not soft."""
    soft = {"is_metadata_stale", "changes_seen", "successor", "assigned_at_ms", "looked_up_at_ms", "counted_epoch"}
    return {name: value for name, value in vars(group).items() if name not in soft}
