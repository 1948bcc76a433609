"""A shard of groups in a harness, and members by short names.

A member's name stands for its present member id, wherever it is sent and wherever it comes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.kernel.api import NO_PRODUCER, ErrorCode, ProducerIdentity, encode_bytes
from odradek.kernel.errors import error_code
from odradek.kernel.wire.messages.api_08_offset_commit import OffsetCommitRequestPartition
from odradek.kernel.wire.messages.api_11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest
from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest, MemberIdentity
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.kernel.wire.messages.consumer_protocol import encode_subscription, new_subscription
from odradek.kernel.wire.messages.data_consumer_protocol import ConsumerProtocolSubscription
from odradek.plugins.groups.coordinator import GroupCoordinator
from odradek.plugins.groups.group import Caller
from odradek.plugins.groups.offsets import Committer, TopicCommit
from odradek.testing.shard_harness import RecordingWaiter, ShardHarness

from .group_broker import GroupBroker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.plugins.groups.records import GroupRecord
    from odradek.plugins.groups.shard import GroupShard

GROUP = "g"
CLIENT = "client"


def subscription(topics: Sequence[str], owned: Mapping[str, Sequence[int]] | None = None) -> bytes:
    """Return what a consumer says that it reads, and owns where it gives up partitions one by one."""
    if owned is not None:
        return encode_subscription(new_subscription(topics, owned=owned))
    return b"\0\0" + bytes(encode_bytes(ConsumerProtocolSubscription(topics=list(topics)), 0))


class DrivenGroups:
    """A shard, and the requests of its clients.

    Attributes:
        member_ids: The present ids of members, by the names that the test gives them.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, topics: Mapping[str, int] | None = None) -> None:
        self.broker = GroupBroker(settings, topics or {"t": 4, "u": 4})
        self.coordinator = GroupCoordinator(self.broker)
        self.harness: ShardHarness[GroupShard, GroupRecord] = ShardHarness.of(self.coordinator, snapshot=hard_state)
        self.member_ids: dict[str, str] = {}

    @property
    def shard(self) -> GroupShard:
        return self.harness.shard

    def named(self, member_id: str) -> str:
        """Return the name of a member id, the id itself if it has none."""
        return next((name for name, known in self.member_ids.items() if known == member_id), member_id)

    def learn(self, name: str, response: JoinGroupResponse) -> None:
        """Take the id that a member was given, in the group or to come back with."""
        if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_ids[name] = response.member_id

    def join(
        self,
        name: str,
        *,
        member_id: str | None = None,
        instance_id: str | None = None,
        version: int = 5,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        protocol_type: str = "consumer",
        protocols: Mapping[str, Sequence[str]] | None = None,
        owned: Mapping[str, Sequence[int]] | None = None,
        group: str = GROUP,
    ) -> RecordingWaiter:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=self.member_ids.get(name, "") if member_id is None else member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=protocol, metadata=subscription(topics, owned))
                for protocol, topics in ({"range": ["t"]} if protocols is None else protocols).items()
            ],
        )
        waiter = RecordingWaiter()
        caller = Caller(CLIENT, "/127.0.0.1", version)
        self.harness.submit(lambda shard, now_ms: shard.join(request, caller, waiter, now_ms), waiter)
        return waiter

    def sync(
        self,
        name: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol: str | None = None,
        group: str = GROUP,
    ) -> RecordingWaiter:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=self.member_ids.get(name, name),
            group_instance_id=instance_id,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=self.member_ids.get(other, other), assignment=assignment)
                for other, assignment in (assignments or {}).items()
            ],
        )
        waiter = RecordingWaiter()
        self.harness.submit(lambda shard, now_ms: shard.sync(request, waiter, now_ms), waiter)
        return waiter

    def heartbeat(self, name: str, generation: int, *, instance_id: str | None = None, group: str = GROUP) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group,
            generation_id=generation,
            member_id=self.member_ids.get(name, name),
            group_instance_id=instance_id,
        )
        return code_of(self.harness.run(lambda shard, now_ms: shard.heartbeat(request, now_ms)))

    def leave(self, *members: tuple[str, str | None], group: str = GROUP) -> RecordingWaiter:
        """Have members leave, each by name (or empty) and instance id."""
        identities = [
            MemberIdentity(member_id=self.member_ids.get(name, name), group_instance_id=instance_id)
            for name, instance_id in members
        ]
        request = LeaveGroupRequest(group_id=group, members=identities)
        caller = Caller(CLIENT, "/127.0.0.1", 5)
        return self.harness.run(lambda shard, now_ms: shard.leave(request, caller, now_ms))

    def commit(
        self,
        offsets: Mapping[str, Mapping[int, int]],
        *,
        name: str = "",
        generation: int = -1,
        instance_id: str | None = None,
        version: int = 8,
        retention_ms: int = -1,
        metadata: str | None = "",
        producer: ProducerIdentity = NO_PRODUCER,
        group: str = GROUP,
    ) -> RecordingWaiter:
        committer = Committer(
            group_id=group,
            member_id=self.member_ids.get(name, name),
            instance_id=instance_id,
            generation=generation,
            api_version=version,
            retention_ms=retention_ms,
            is_transactional=producer is not NO_PRODUCER,
        )
        topics = []
        for topic, partitions in offsets.items():
            view = self.broker.cluster.topic(topic)
            assert view is not None
            items = [
                OffsetCommitRequestPartition(
                    partition_index=number, committed_offset=offset, committed_metadata=metadata
                )
                for number, offset in partitions.items()
            ]
            topics.append(TopicCommit(topic, view.topic_id, items))
        return self.harness.run(lambda shard, now_ms: shard.offsets.commit(committer, topics, now_ms), producer)

    def fetch(self, *, requires_stable: bool = False, group: str = GROUP) -> dict[str, dict[int, int | ErrorCode]]:
        """Return all committed offsets, or why one is not told."""
        waiter = self.harness.run(
            lambda shard, _: shard.offsets.fetch(
                group, None, member_id=None, member_epoch=-1, requires_stable=requires_stable
            )
        )
        return {
            topic: {found.partition: found.code or (found.value.offset if found.value else -1) for found in partitions}
            for topic, partitions in waiter.response
        }


def code_of(waiter: RecordingWaiter) -> ErrorCode:
    """Return the error code of an answer or a failure."""
    return waiter.error_code or error_code(waiter.response.error_code)


def hard_state(shard: GroupShard) -> tuple[object, list[str]]:
    """Return what a shard that is loaded from the log has in common with the one that wrote it.

    The state of a classic group is soft: of those, only what is written when they are synced or empty comes back.
    """
    offsets = {key[:3]: (key[3].offset, key[3].commit_timestamp) for key in shard.offsets.committed()}
    return offsets, sorted(shard.context.groups)
