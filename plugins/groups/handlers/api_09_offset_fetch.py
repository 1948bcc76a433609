"""Shell: OffsetFetch (key 9): how far groups have got.

One group a request up to version 7, any number from version 8 on; topics by name, from version 10 on by id. The answer
of a group is built once, and put into the older form where the client asks in it.

*Source:* KIP-447 (stable offsets only), KIP-709 (several groups), KIP-848 (member epochs, topic ids).
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import (
    AS_TASK,
    PENDING,
    ZERO_ID,
    ErrorCode,
    KafkaError,
    ListPieces,
    Slices,
    are_many,
    run_at_once,
)
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

from .common import Gathering, GroupHandler

if TYPE_CHECKING:
    import uuid
    from collections.abc import Generator, Iterable, Sequence

    from odradek.kernel.api import Answer, RequestContext

    from ..found_offsets import FoundOffset, OffsetsView
    from .common import GroupOperation

_GROUP_ERROR_FROM: Final = 2
"""The version from which an error is the group's; before, it is each partition's."""
_GROUPS_FROM: Final = 8
_IDS_FROM: Final = 10

_NOT_COORDINATOR_CODES: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Errors of a commit that failed, which consumers do not expect here: they look for the coordinator anew instead."""


@attrs.frozen
class _Wanted:
    """What is asked of one group: topics that are known, or None for all; and the answers about the others."""

    topics: Sequence[tuple[str, uuid.UUID, Sequence[int]]] | None
    unknown: Sequence[OffsetFetchResponseTopics]


class OffsetFetchHandler(GroupHandler):
    """Answers OffsetFetch."""

    api_key = 9
    pieces = ListPieces(
        "topics.partition_indexes",
        "groups.topics.partition_indexes",
        answers=["topics.partitions", "groups.topics.partitions"],
    )

    def handle(self, request: OffsetFetchRequest, context: RequestContext) -> Answer:
        """Answer once what was written before is committed, in every group that is asked for."""
        version = context.api_version
        groups_asked = _groups_of(request, version)
        if self._are_many([group.group_id for group in groups_asked if group.topics is None]):
            return AS_TASK
        gathering = Gathering(lambda groups: context.reply(run_at_once(_fit_in_steps(version, groups))))
        for group in groups_asked:
            self._ask(group, request.require_stable, version, gathering)
        gathering.seal()
        return PENDING

    async def handle_async(self, request: OffsetFetchRequest, context: RequestContext) -> Answer:
        """Answer where groups have very many offsets. Cancelled: nobody waits for it any more."""
        version, slices = context.api_version, Slices()
        groups = [
            await self._read(group, request.require_stable, context, slices) for group in _groups_of(request, version)
        ]
        return await slices.run(_fit_in_steps(version, groups))

    def _are_many(self, group_ids: Sequence[str]) -> bool:
        """Return whether groups, of which all offsets are asked for, have many of them."""
        if not group_ids:
            return False
        shards = dict(self._runtime.shards())
        found = [(shards.get(self._runtime.partition_for(group_id)), group_id) for group_id in group_ids]
        return are_many(
            chain.from_iterable(shard.offsets.sizes_of(group_id) for shard, group_id in found if shard is not None)
        )

    async def _read(
        self, group: OffsetFetchRequestGroup, requires_stable: bool, context: RequestContext, slices: Slices
    ) -> OffsetFetchResponseGroup:
        """Return the answer about one group, which is put together in slices of what was so at one moment."""
        version = context.api_version
        wanted = self._wanted(group, version)
        partition = self._runtime.partition_for(group.group_id)
        found: Iterable[tuple[str, Iterable[FoundOffset]]]
        try:
            if wanted.topics is None:
                reading_all = partial(self._runtime.call, partition, _reading_all(group, requires_stable))
                view: OffsetsView = await context.wait_aside(reading_all)
                found = view.everything()
            else:
                reading = partial(self._runtime.call, partition, _reading(group, wanted, requires_stable))
                found = await context.wait_aside(reading)
        except KafkaError as error:
            return _failed(group, version, error.code)
        return await slices.run(self._found_in_steps(group, wanted, version, found))

    def _ask(self, group: OffsetFetchRequestGroup, requires_stable: bool, version: int, gathering: Gathering) -> None:
        wanted = self._wanted(group, version)
        waiter = gathering.waiter(
            lambda code, detail: _failed(group, version, code),
            lambda found: run_at_once(self._found_in_steps(group, wanted, version, found)),
        )
        self._submit(
            group.group_id,
            _reading(group, wanted, requires_stable),
            waiter,
        )

    def _wanted(self, group: OffsetFetchRequestGroup, version: int) -> _Wanted:
        if group.topics is None:
            return _Wanted(None, ())
        if version < _IDS_FROM:
            return _Wanted([(topic.name, ZERO_ID, topic.partition_indexes) for topic in group.topics], ())
        known, unknown = [], []
        for topic in group.topics:
            view = self._broker.cluster.topic_by_id(topic.topic_id)
            if view is None:
                unknown.append(_unknown(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                known.append((view.name, topic.topic_id, topic.partition_indexes))
        return _Wanted(known, unknown)

    def _found_in_steps(
        self,
        group: OffsetFetchRequestGroup,
        wanted: _Wanted,
        version: int,
        found: Iterable[tuple[str, Iterable[FoundOffset]]],
    ) -> Generator[None, None, OffsetFetchResponseGroup]:
        topics = []
        for name, offsets in found:
            yield
            view = self._broker.cluster.topic(name) if version >= _IDS_FROM else None
            if version >= _IDS_FROM and view is None:
                continue  # Deleted meanwhile: without an id there is no way to tell of it.
            partitions = []
            for offset in offsets:
                partitions.append(_partition(offset))
                yield
            topics.append(
                OffsetFetchResponseTopics(
                    name=name,
                    topic_id=ZERO_ID if view is None else view.topic_id,
                    partitions=partitions,
                )
            )
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=[*topics, *wanted.unknown])

    def error_response(
        self, request: OffsetFetchRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every group this error."""
        version = context.api_version
        failed = [_failed(group, version, code) for group in _groups_of(request, version)]
        return run_at_once(_fit_in_steps(version, failed))


def _reading(group: OffsetFetchRequestGroup, wanted: _Wanted, requires_stable: bool) -> GroupOperation:
    return lambda shard, _: shard.offsets.fetch(
        group.group_id,
        wanted.topics,
        member_id=group.member_id,
        member_epoch=group.member_epoch,
        requires_stable=requires_stable,
    )


def _reading_all(group: OffsetFetchRequestGroup, requires_stable: bool) -> GroupOperation:
    return lambda shard, _: shard.offsets.fetch_all(
        group.group_id,
        member_id=group.member_id,
        member_epoch=group.member_epoch,
        requires_stable=requires_stable,
    )


def _groups_of(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    if version >= _GROUPS_FROM:
        return request.groups
    topics = request.topics
    return [
        OffsetFetchRequestGroup(
            group_id=request.group_id,
            topics=None
            if topics is None
            else [
                OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics
            ],
        )
    ]


def _partition(found: FoundOffset) -> OffsetFetchResponsePartitions:
    value = found.value
    if value is None:
        return OffsetFetchResponsePartitions(
            partition_index=found.partition, committed_offset=-1, metadata="", error_code=found.code
        )
    return OffsetFetchResponsePartitions(
        partition_index=found.partition,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def _unknown(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=number, committed_offset=-1, metadata="", error_code=code)
            for number in topic.partition_indexes
        ],
    )


def _failed(group: OffsetFetchRequestGroup, version: int, code: ErrorCode) -> OffsetFetchResponseGroup:
    if code in _NOT_COORDINATOR_CODES:
        code = ErrorCode.NOT_COORDINATOR
    if version >= _GROUP_ERROR_FROM:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    return OffsetFetchResponseGroup(topics=[_unknown(topic, code) for topic in group.topics or ()])


def _fit_in_steps(
    version: int, groups: Sequence[OffsetFetchResponseGroup]
) -> Generator[None, None, OffsetFetchResponse]:
    """Return the response, in the form with one group where the version has no other."""
    if version >= _GROUPS_FROM:
        return OffsetFetchResponse(groups=list(groups))
    (group,) = groups
    topics = []
    for topic in group.topics:
        partitions = []
        for item in topic.partitions:
            partitions.append(
                OffsetFetchResponsePartition(
                    partition_index=item.partition_index,
                    committed_offset=item.committed_offset,
                    committed_leader_epoch=item.committed_leader_epoch,
                    metadata=item.metadata,
                    error_code=item.error_code,
                )
            )
            yield
        topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=partitions))
    return OffsetFetchResponse(error_code=group.error_code, topics=topics)
