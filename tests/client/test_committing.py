"""Looking up committed offsets while the membership changes."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import trio

from odradek.client.group.committed import OffsetAndMetadata
from odradek.client.group.committing import Committer
from odradek.client.group.member import GroupMetadata
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

PARTITION = TopicPartition("t", 0)


def answer(code: ErrorCode, offset: int = -1) -> OffsetFetchResponse:
    part = OffsetFetchResponsePartitions(partition_index=0, committed_offset=offset, metadata="")
    topics = [] if code else [OffsetFetchResponseTopics(name="t", partitions=[part])]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=code)])


class LeavingLink:
    """The coordinator: while it answers the first request, the member leaves."""

    def __init__(self) -> None:
        self.brokers = SimpleNamespace(cluster=SimpleNamespace(topic_id=lambda topic: None))
        self.answers = [answer(ErrorCode.UNKNOWN_MEMBER_ID), answer(ErrorCode.NONE, 7)]
        self.committer: Committer | None = None

    async def request(self, request: object, *, version_max: int | None = None) -> OffsetFetchResponse:
        await trio.lowlevel.checkpoint()
        assert self.committer is not None
        self.committer.member = None
        return self.answers.pop(0)


def test_a_member_that_leaves_while_its_offsets_are_looked_up_breaks_nothing() -> None:
    link: Any = LeavingLink()
    settings: Any = SimpleNamespace(group_id="g", is_consumer_protocol=True)
    member: Any = SimpleNamespace(metadata=GroupMetadata("g", 3, "m", None))
    committer = link.committer = Committer(settings, link, member, Backoff(1, 2, random.Random(1)))

    async def main() -> dict[TopicPartition, OffsetAndMetadata | None]:
        return await committer.fetch([PARTITION], timeout_ms=10_000)

    found = trio.run(main)[PARTITION]
    assert found is not None
    assert found.offset == 7
