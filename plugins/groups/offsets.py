r"""Pure core: committed offsets of groups of all types, those of open transactions, and when offsets expire.

::

    commit ------------------------------------------> committed
    commit in a transaction --> pending --- commit --> committed, unless a later record already said otherwise
                                      \---- abort ---> forgotten

An offset is kept by group id, so it outlives its group's members and a change of the group's type. It goes when its
topic is deleted, when somebody deletes it, or when it expires: by its own time if the commit had one, else a while
after its group has become empty or, for consumers that are in no group, after the commit. One whose metadata is
`odradek.keep` does not expire: it says what must not be done twice, however long ago that was.

*Source:* KIP-98, KIP-211, KIP-447; the behaviour of Kafka's OffsetMetadataManager; `odradek.keep` is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from odradek.kernel.api import NO_PRODUCER_ID, ZERO_ID, ErrorCode, KafkaError
from odradek.kernel.wire.messages.data_group_records import OffsetCommitKey, OffsetCommitValue

from .found_offsets import OffsetsView
from .group import Effects
from .offset_records import KEPT, NO_EXPIRY
from .records import GroupRecord, offset_tombstone
from .walks import Walk, tombstones_in_steps

if TYPE_CHECKING:
    import uuid
    from collections.abc import Generator, Iterable, Iterator

    from odradek.kernel.api import CoordinatorResult, CoordinatorSteps, Message, MetadataChange, ProducerIdentity

    from .classic.operations import ClassicGroups
    from .found_offsets import FoundOffset
    from .group import Group, PartitionCheck, ReplayMethod, ShardContext

EXPIRY_TIMER: Final = ("offset expiry",)
EXPIRY_WALK: Final = ("offset expiry, next slice",)
DELETION_WALK: Final = ("offsets of deleted topics, next slice",)
NO_RETENTION: Final = -1
"""`OffsetCommitRequest.retention_time_ms` of a commit that expires with its group."""

_GROUP_ID_NOT_FOUND_FROM: Final = 9
"""The version of OffsetCommit from which a client understands that there is no such group."""
_MINUTE_MS: Final = 60_000
OFFSETS_PER_STEP: Final = 20
_TIME_MAX_MS: Final = (1 << 63) - 1


def expires_at(retention_ms: int, now_ms: int) -> int:
    """Return when an offset expires that is to be kept for so long: at the end of all time at the latest.

    Kafka adds without a look, and keeps what shall be kept for ever for no time at all.
    """
    return NO_EXPIRY if retention_ms == NO_RETENTION else min(now_ms + retention_ms, _TIME_MAX_MS)


class CommittedOffset(NamedTuple):
    """How far a group has got in a partition.

    Attributes:
        record_offset: Where the record that says so stands in the offsets topic.
        value: What it says.
    """

    record_offset: int
    value: OffsetCommitValue


OffsetsByPartition: TypeAlias = dict[int, CommittedOffset]
OffsetsByTopic: TypeAlias = dict[str, OffsetsByPartition]


class PartitionCommit(Protocol):
    """A partition of a request, OffsetCommit's or TxnOffsetCommit's."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class TopicCommit(NamedTuple):
    """What is to be committed in a topic that exists."""

    name: str
    topic_id: uuid.UUID
    partitions: Sequence[PartitionCommit]


class Committer(NamedTuple):
    """Who commits.

    Attributes:
        group_id: For which group.
        member_id: As which member; may be empty.
        instance_id: As which static member, if it says so.
        generation: In which generation or member epoch; negative for none.
        api_version: Of the request.
        retention_ms: How long the offsets are to be kept, or `NO_RETENTION`.
        is_transactional: Whether the offsets wait for the end of a transaction.
    """

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    api_version: int
    retention_ms: int = NO_RETENTION
    is_transactional: bool = False


class Offsets:
    """The offsets of a shard: a part of it, and the operations on them."""

    def __init__(self, context: ShardContext, classic: ClassicGroups) -> None:
        """Make it, without offsets.

        Args:
            context: What the parts of the shard share.
            classic: Groups of those who commit without being members are classic ones.
        """
        self._context = context
        self._classic = classic
        self._committed: dict[str, OffsetsByTopic] = {}
        self._pending: dict[int, dict[str, OffsetsByTopic]] = {}
        # By group, whose transactions have offsets of it, so that a look at a group costs nothing for all the others.
        self._producers: dict[str, set[int]] = {}
        self._expiry = Walk(context, EXPIRY_WALK, self._expire_in, self._arm_expiry)
        self._deletion = Walk(context, DELETION_WALK, self._delete_topics_in, self._deletion_done)
        self._deleted_topics: frozenset[str] = frozenset()
        self._deleted_meanwhile: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"Offsets({self.count} committed, {len(self._pending)} open transactions)"

    @property
    def count(self) -> int:
        """How many offsets are committed."""
        return sum(len(partitions) for topics in self._committed.values() for partitions in topics.values())

    def committed(self) -> Iterator[tuple[str, str, int, OffsetCommitValue]]:
        """Iterate over group id, topic, partition and what is committed; groups may come and go meanwhile."""
        for group_id in tuple(self._committed):
            found = [
                (group_id, topic, partition, offset.value)
                for topic, partitions in self._committed.get(group_id, {}).items()
                for partition, offset in partitions.items()
            ]
            yield from found

    # ------------------------------------------------------------------------------------------------ a part of a shard

    @property
    def replays(self) -> Mapping[type[Message], ReplayMethod]:
        """By class of key, what applies a record."""
        return {OffsetCommitKey: self._replay}

    def _replay(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, offset: int, producer: ProducerIdentity
    ) -> None:
        group_id = key.group
        if value is None:
            _remove(self._committed, key)
            for producer_id in tuple(self._producers.get(group_id, ())):
                _remove(self._pending[producer_id], key)
                if group_id not in self._pending[producer_id]:
                    self._forget_producer(group_id, producer_id)
            return
        if group_id not in self._context.groups:
            self._classic.create(group_id)
        store = self._committed
        if producer.producer_id != NO_PRODUCER_ID:
            store = self._pending.setdefault(producer.producer_id, {})
            self._producers.setdefault(group_id, set()).add(producer.producer_id)
        store.setdefault(group_id, {}).setdefault(key.topic, {})[key.partition] = CommittedOffset(offset, value)

    def replay_marker(self, producer: ProducerIdentity, *, is_commit: bool) -> None:
        """Apply the end of a transaction: its offsets count from now on, or never.

        Where a later record than the transaction's has said otherwise meanwhile, that one stays: which of them a
        compacted log still holds must not matter.
        """
        pending = self._pending.pop(producer.producer_id, {})
        for group_id in pending:
            self._forget_producer(group_id, producer.producer_id)
        if not is_commit:
            return
        for group_id, topics in pending.items():
            for topic, partitions in topics.items():
                for partition, offset in partitions.items():
                    committed = self._committed.setdefault(group_id, {}).setdefault(topic, {})
                    known = committed.get(partition)
                    if known is None or offset.record_offset > known.record_offset:
                        committed[partition] = offset

    def _forget_producer(self, group_id: str, producer_id: int) -> None:
        producers = self._producers[group_id]
        producers.remove(producer_id)
        if not producers:
            del self._producers[group_id]

    def loaded(self, now_ms: int) -> Iterable[None]:
        """Begin to look for expired offsets."""
        self._arm_expiry()
        return ()

    def metadata_changed(self, change: MetadataChange, now_ms: int) -> Generator[None, None, Effects]:
        """Remove the offsets of deleted topics, slice by slice."""
        self._deleted_meanwhile |= {topic.name for topic in change.deleted_topics}
        return Effects() if self._deleted_topics else (yield from self._begin_deletion(now_ms))

    def _begin_deletion(self, now_ms: int) -> Generator[None, None, Effects]:
        self._deleted_topics, self._deleted_meanwhile = self._deleted_meanwhile, frozenset()
        if not self._deleted_topics:
            return Effects()
        return (yield from self._deletion.begin({**self._committed, **self._producers}, now_ms))

    def _go_on_deleting(self, now_ms: int) -> CoordinatorSteps:
        effects = yield from self._begin_deletion(now_ms)
        return effects.result(None, is_atomic=False)

    def _delete_topics_in(self, group_id: str, now_ms: int, effects: Effects) -> Generator[None, None, int]:
        """Remove what a group committed in deleted topics, but not in a topic that came under the same name since."""
        found = {
            (topic, partition): offset.value.topic_id
            for topics in self._stores_of(group_id)
            for topic in self._deleted_topics & topics.keys()
            for partition, offset in topics[topic].items()
        }
        for number, ((topic, partition), topic_id) in enumerate(found.items()):
            if number % OFFSETS_PER_STEP == 0:
                yield
            namesake = self._context.broker.cluster.topic(topic)
            if namesake is None or namesake.topic_id != topic_id:
                effects.records.append(offset_tombstone(group_id, topic, partition))
        return len(found)

    def _deletion_done(self) -> None:
        self._deleted_topics = frozenset()
        if self._deleted_meanwhile:
            self._context.timers.schedule(DELETION_WALK, 0, self._go_on_deleting)

    def _stores_of(self, group_id: str) -> Iterator[OffsetsByTopic]:
        """Iterate over what a group has committed, and has in each open transaction."""
        yield self._committed.get(group_id, {})
        for producer_id in sorted(self._producers.get(group_id, ())):
            yield self._pending[producer_id].get(group_id, {})

    # ------------------------------------------------------------------------------------------------------- committing

    def commit(
        self, committer: Committer, topics: Sequence[TopicCommit], now_ms: int
    ) -> CoordinatorResult[GroupRecord, list[list[ErrorCode]]]:
        """Commit offsets.

        Args:
            committer: Who does.
            topics: What, in topics and partitions that exist.
            now_ms: The wall clock.

        Returns:
            A result whose response is by topic and partition, in their order, NONE or OFFSET_METADATA_TOO_LARGE.

        Raises:
            KafkaError: The sender may not commit.
        """
        try:
            return self._commit(committer, topics, now_ms)
        except KafkaError as error:
            if committer.is_transactional and error.code is ErrorCode.STALE_MEMBER_EPOCH:
                # The one that producers know: their transaction is to be aborted.
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.detail) from error
            raise

    def _commit(
        self, committer: Committer, topics: Sequence[TopicCommit], now_ms: int
    ) -> CoordinatorResult[GroupRecord, list[list[ErrorCode]]]:
        group, check = self._committing_group(committer)
        if group is not None and not committer.is_transactional:
            self._classic.saw_member(group, committer.member_id)
        metadata_max = self._context.broker.config.get_int("offset.metadata.max.bytes")
        expires_ms = expires_at(committer.retention_ms, now_ms)
        records: list[GroupRecord] = []
        codes: list[list[ErrorCode]] = []
        for topic in topics:
            codes.append(topic_codes := [])
            for item in topic.partitions:
                metadata = item.committed_metadata or ""
                if len(metadata) > metadata_max:
                    topic_codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                    continue
                if check is not None:
                    check(topic.name, topic.topic_id, item.partition_index)
                topic_codes.append(ErrorCode.NONE)
                key = OffsetCommitKey(group=committer.group_id, topic=topic.name, partition=item.partition_index)
                value = OffsetCommitValue(
                    offset=item.committed_offset,
                    leader_epoch=item.committed_leader_epoch,
                    metadata=metadata,
                    commit_timestamp=now_ms,
                    expire_timestamp=expires_ms,
                    # TxnOffsetCommit has none: Kafka checks by the one of the name, and does not keep it.
                    topic_id=ZERO_ID if committer.is_transactional else topic.topic_id,
                )
                records.append(GroupRecord(key, value))
        self._context.counters.offset_commits += len(records)
        return Effects(records).result(codes)

    def _committing_group(self, committer: Committer) -> tuple[Group | None, PartitionCheck | None]:
        """Return the group, and what judges each partition. None for one that comes to be with the first record."""
        group = self._context.groups.get(committer.group_id)
        if group is None:
            if committer.generation < 0:
                # An administrator, or a consumer that is no member: it needs no group that was there before.
                return None, None
            knows_code = not committer.is_transactional and committer.api_version >= _GROUP_ID_NOT_FOUND_FROM
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if knows_code else ErrorCode.ILLEGAL_GENERATION)
        return group, group.validate_offset_commit(
            member_id=committer.member_id,
            instance_id=committer.instance_id,
            generation=committer.generation,
            is_transactional=committer.is_transactional,
            api_version=committer.api_version,
        )

    # ---------------------------------------------------------------------------------------------------------- reading

    def fetch(
        self,
        group_id: str,
        topics: Sequence[tuple[str, uuid.UUID, Sequence[int]]] | None,
        *,
        member_id: str | None,
        member_epoch: int,
        requires_stable: bool,
    ) -> CoordinatorResult[GroupRecord, list[tuple[str, list[FoundOffset]]]]:
        """Read committed offsets.

        Args:
            group_id: Whose.
            topics: Name, id (`ZERO_ID` if the sender does not know it) and partitions; None for everything.
            member_id: Who asks; None if it does not say.
            member_epoch: Its epoch, in a group of the consumer protocol.
            requires_stable: Whether an offset that an open transaction may change is refused with
                UNSTABLE_OFFSET_COMMIT.

        Returns:
            A result whose response is topics, in the order asked, and what was found.

        Raises:
            KafkaError: The sender may not ask.
        """
        view = self._view(group_id, member_id, member_epoch, requires_stable)
        if topics is None:
            found = [(name, list(offsets)) for name, offsets in view.everything()]
        else:
            found = [(name, [view.find(name, topic_id, number) for number in some]) for name, topic_id, some in topics]
        return Effects().result(found)

    def fetch_all(
        self, group_id: str, *, member_id: str | None, member_epoch: int, requires_stable: bool
    ) -> CoordinatorResult[GroupRecord, OffsetsView]:
        """Read everything, as `fetch` does, of a group that has very much of it.

        Returns:
            A result whose response is what was committed, to be looked at in slices.

        Raises:
            KafkaError: The sender may not ask.
        """
        return Effects().result(self._view(group_id, member_id, member_epoch, requires_stable).copied())

    def sizes_of(self, group_id: str) -> Iterator[int]:
        """Iterate over how many offsets a group has in each topic."""
        return map(len, self._committed.get(group_id, {}).values())

    def _view(self, group_id: str, member_id: str | None, member_epoch: int, requires_stable: bool) -> OffsetsView:
        group = self._context.groups.get(group_id)
        if group is None:
            return OffsetsView({}, ())
        group.validate_offset_fetch(member_id=member_id, member_epoch=member_epoch)
        producers = self._producers.get(group_id, ()) if requires_stable else ()
        pending = [self._pending[producer_id][group_id] for producer_id in producers]
        return OffsetsView(self._committed.get(group_id, {}), pending)

    def _get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._committed.get(group_id, {}).get(topic, {}).get(partition)

    def _is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any(
            partition in self._pending[producer_id][group_id].get(topic, ())
            for producer_id in self._producers.get(group_id, ())
        )

    def _has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._producers

    # --------------------------------------------------------------------------------------------------------- deleting

    def delete(
        self, group_id: str, topics: Sequence[tuple[str, Sequence[int]]]
    ) -> CoordinatorResult[GroupRecord, list[ErrorCode]]:
        """Delete offsets of topics that nobody in the group reads.

        Returns:
            A result whose response is by topic NONE or GROUP_SUBSCRIBED_TO_TOPIC.

        Raises:
            KafkaError: There is no such group, or it is not known what its members read.
        """
        group = self._context.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        group.validate_offset_delete()
        effects, codes = Effects(), []
        for topic, partitions in topics:
            is_read = group.is_subscribed_to(topic)
            codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE)
            if not is_read:
                effects.records += [
                    offset_tombstone(group_id, topic, partition)
                    for partition in partitions
                    if self._get(group_id, topic, partition) or self._is_pending(group_id, topic, partition)
                ]
        self._context.counters.offset_deletions += len(effects.records)
        return effects.result(codes)

    def deletion_in_steps(self, group_id: str) -> Generator[None, None, list[GroupRecord]]:
        """Return the tombstones of all offsets of a group, pending ones among them."""
        keys = {
            (topic, partition): None
            for topics in self._stores_of(group_id)
            for topic, partitions in topics.items()
            for partition in partitions
        }
        return (yield from tombstones_in_steps(group_id, keys))

    # ----------------------------------------------------------------------------------------------------------- expiry

    def _arm_expiry(self) -> None:
        interval_ms = self._context.broker.config.get_int("offsets.retention.check.interval.ms")
        self._context.timers.schedule(EXPIRY_TIMER, interval_ms, self._expire)

    def _expire(self, now_ms: int) -> CoordinatorSteps:
        """Remove expired offsets, and groups that are empty and have none, slice by slice."""
        effects = yield from self._expiry.begin(self._context.groups, now_ms)
        return effects.result(None, is_atomic=False)

    def _expire_in(self, group_id: str, now_ms: int, effects: Effects) -> Generator[None, None, int]:
        group = self._context.groups.get(group_id)
        if group is None:
            return 0
        expired, count = yield from self._expired(group_id, group, now_ms)
        effects.records += yield from tombstones_in_steps(group_id, expired)
        self._context.counters.offset_expirations += len(expired)
        if count == len(expired) and group.is_empty and not self._has_open_transaction(group_id):
            effects.records += group.deletion_records()
        return count

    def _expired(
        self, group_id: str, group: Group, now_ms: int
    ) -> Generator[None, None, tuple[list[tuple[str, int]], int]]:
        """Return which offsets of a group have expired, and how many it has."""
        topics = self._committed.get(group_id, {})
        expires_from = group.offsets_expire_from()
        if expires_from is None:
            return [], sum(map(len, topics.values()))
        retention_ms = self._context.broker.config.get_int("offsets.retention.minutes") * _MINUTE_MS
        expired = []
        count = 0
        for topic, partitions in topics.items():
            count += len(partitions)
            if group.is_subscribed_to(topic):
                continue
            for number, (partition, found) in enumerate(partitions.items()):
                if number % OFFSETS_PER_STEP == 0:
                    yield
                value = found.value
                own_ms = value.expire_timestamp
                ends_ms = own_ms if own_ms != NO_EXPIRY else expires_from(value.commit_timestamp) + retention_ms
                if now_ms >= ends_ms and value.metadata != KEPT and not self._is_pending(group_id, topic, partition):
                    expired.append((topic, partition))
        return expired, count


def _remove(store: dict[str, OffsetsByTopic], key: OffsetCommitKey) -> None:
    """Remove an offset, and what it leaves empty."""
    topics = store.get(key.group)
    partitions = topics.get(key.topic) if topics else None
    if not topics or not partitions or partitions.pop(key.partition, None) is None:
        return
    if not partitions:
        del topics[key.topic]
    if not topics:
        del store[key.group]
