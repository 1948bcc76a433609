"""Shell: the task that fetches ahead for a consumer, and finds its positions.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import ClientError, UnsupportedVersionError
from odradek.kernel.types import CONSUMER_REPLICA_ID, TopicPartition
from odradek.kernel.wire.messages.api_23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.kernel.wire.special_timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

from .brokers import now_ms
from .links import coordinator_link
from .offsets import list_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.machine.clock import Clock
    from odradek.kernel.peers.backoff import Backoff
    from odradek.kernel.wire.messages.api_01_fetch import FetchRequest, FetchResponse

    from .brokers import Brokers
    from .consumer_settings import ConsumerSettings
    from .fetcher import Fetch, Fetcher
    from .group.committing import Committer
    from .offset_lists import OffsetAndTimestamp
    from .positions import Check

_log = logging.getLogger(__name__)

CLOSING_S: Final = 1
_VERSION_WITHOUT_IDS: Final = 12
"""The last version of Fetch that names topics."""


class FetchLoop:
    """Fetches what the fetcher wants; `run` is the one task that asks it."""

    def __init__(
        self,
        settings: ConsumerSettings,
        brokers: Brokers,
        fetcher: Fetcher,
        committer: Committer | None,
        clock: Clock,
        backoff: Backoff,
    ) -> None:
        """Remember; `committer` looks up what the group has committed, if there is a group."""
        self.fetches_count = 0
        self._settings = settings
        self._brokers = brokers
        self._fetcher = fetcher
        self._committer = committer
        self._clock = clock
        self._backoff = backoff
        self._failures_count = 0
        self._wake = trio.Event()
        self._arrived = trio.Event()

    def wake(self) -> None:
        """Have the task look again."""
        self._wake.set()

    @property
    def arrived(self) -> trio.Event:
        """Set when something comes next: records, a position, an error."""
        return self._arrived

    def announce(self) -> None:
        """Wake whoever waits for something to come."""
        self._arrived.set()
        self._arrived = trio.Event()

    async def run(self) -> None:
        """Fetch until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                self._wake = trio.Event()
                next_ms = self._turn(nursery)
                with trio.move_on_at(next_ms / 1_000):
                    await self._wake.wait()

    def _turn(self, nursery: trio.Nursery) -> float:
        time_ms, fetcher = now_ms(), self._fetcher
        if self._committer is not None and (wanted := fetcher.take_uncommitted(time_ms)):
            nursery.start_soon(self._find_committed, self._committer, wanted)
        errors_count = fetcher.errors_count
        resets = fetcher.take_resets(time_ms, self._reset_timestamp())
        if fetcher.errors_count > errors_count:
            self.announce()
        if resets:
            nursery.start_soon(self._reset, resets)
        by_node: dict[int, dict[TopicPartition, Check]] = {}
        for where, check in fetcher.take_checks(time_ms).items():
            by_node.setdefault(self._brokers.cluster.leader_of(where) or 0, {})[where] = check
        for node_id, checks in by_node.items():
            nursery.start_soon(self._check, node_id, checks)
        nodes, next_ms, is_leader_unknown = fetcher.fetchable(time_ms)
        if is_leader_unknown:
            self._brokers.request_update()
        for node_id, partitions in nodes.items():
            nursery.start_soon(self._fetch, fetcher.begin_fetch(partitions, node_id))
        # Nobody is woken without need: who polls wakes this task, and the two would keep each other awake.
        return next_ms

    def _reset_timestamp(self) -> int | None:
        if self._settings.reset == "by_duration":
            return max(self._clock.now_ms() - self._settings.reset_duration_ms, 0)
        return {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}.get(self._settings.reset)

    def _came(self) -> None:
        self.announce()
        self.wake()

    async def _find_committed(self, committer: Committer, wanted: dict[TopicPartition, int]) -> None:
        try:
            found = await committer.fetch(wanted, timeout_ms=self._settings.api_timeout_ms)
        except ClientError as error:
            self._fetcher.failed(wanted, self._retry_at_ms(), None if error.retriable else error)
        else:
            for where, offset in found.items():
                self._fetcher.committed(where, wanted[where], offset)
        self._came()

    async def list(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look offsets up by timestamp; raises and is cancelled as `list_offsets`."""
        return await list_offsets(
            self._brokers,
            timestamps,
            isolation_level=self._settings.isolation_level,
            timeout_ms=self._settings.api_timeout_ms,
            backoff=self._backoff,
        )

    async def _reset(self, resets: dict[TopicPartition, tuple[int, int]]) -> None:
        generations = {where: generation for where, (_, generation) in resets.items()}
        try:
            found = await self.list({where: timestamp for where, (timestamp, _) in resets.items()})
            late = [where for where, item in found.items() if item.offset < 0]
            if late:  # no record is as late as the timestamp: begin at the end, as Java does
                found |= await self.list(dict.fromkeys(late, LATEST_TIMESTAMP))
        except ClientError as error:
            self._fetcher.failed(generations, self._retry_at_ms(), None if error.retriable else error)
        else:
            for where, item in found.items():
                self._fetcher.reset(where, generations[where], item.offset, item.leader_epoch)
        self._came()

    async def _check(self, node_id: int, checks: dict[TopicPartition, Check]) -> None:
        """Ask a new leader whether it has what was read (KIP-320)."""
        topics: dict[str, OffsetForLeaderTopic] = {}
        for where, check in checks.items():
            topic = topics.setdefault(where.topic, OffsetForLeaderTopic(topic=where.topic, partitions=[]))
            topic.partitions.append(
                OffsetForLeaderPartition(
                    partition=where.partition,
                    current_leader_epoch=check.leader_epoch,
                    leader_epoch=check.position_epoch,
                )
            )
        request = OffsetForLeaderEpochRequest(replica_id=CONSUMER_REPLICA_ID, topics=list(topics.values()))
        left = {where: check.generation for where, check in checks.items()}
        try:
            response: OffsetForLeaderEpochResponse = await self._brokers.request(node_id, request)
        except UnsupportedVersionError:
            self._fetcher.unchecked(checks)
        except ClientError as error:
            _log.debug("broker %d does not say where epochs end: %s", node_id, error)
            self._doubt(left)
        else:
            for topic_result in response.topics:
                for item in topic_result.partitions:
                    where = TopicPartition(topic_result.topic, item.partition)
                    if error_code(item.error_code) is ErrorCode.NONE and left.pop(where, None) is not None:
                        may_reset = self._settings.reset != "none"
                        self._fetcher.checked(
                            where, checks[where], item.leader_epoch, item.end_offset, may_reset=may_reset
                        )
            if left:
                self._doubt(left)
        self._came()

    def _doubt(self, generations: dict[TopicPartition, int]) -> None:
        self._fetcher.failed(generations, self._retry_at_ms())
        self._brokers.doubt_leaders(generations)

    async def _fetch(self, fetch: Fetch) -> None:
        timeout_ms = self._settings.connection.request_timeout_ms + self._settings.fetch_wait_ms_max
        version_max = None if fetch.has_topic_ids else _VERSION_WITHOUT_IDS
        try:
            response: FetchResponse = await self._brokers.request(
                fetch.node_id, fetch.request, timeout_ms=timeout_ms, version_max=version_max
            )
        except UnsupportedVersionError as error:
            self._fetcher.fail_fetch(fetch, self._retry_at_ms(), error)
        except ClientError as error:
            _log.debug("fetching from broker %d failed: %s", fetch.node_id, error)
            self._fetcher.fail_fetch(fetch, self._retry_at_ms())
            self._brokers.doubt_leaders(fetch.generations)
        else:
            self._failures_count = 0
            self.fetches_count += 1
            time_ms = now_ms()
            if self._fetcher.finish_fetch(fetch, response, time_ms, time_ms + self._backoff.pause_ms(1)):
                self._brokers.doubt_leaders(self._fetcher.resting(fetch.generations, time_ms))
        self._came()

    async def close_sessions(self) -> None:
        """Close the brokers' sessions, as Java does; called when `run` has ended. Takes a second at most.

        A broker that still waits for records answers nothing else on that connection: it is told on another one.
        Cancelled, some stay until brokers need their places.
        """
        with trio.move_on_after(CLOSING_S):
            async with trio.open_nursery() as nursery:
                for node_id, owes_answer, request in self._fetcher.end_sessions():
                    link = coordinator_link(node_id) if owes_answer else node_id
                    nursery.start_soon(self._close_session, link, request)

    async def _close_session(self, link: int, request: FetchRequest) -> None:
        try:
            await self._brokers.request(link, request)
        except ClientError as error:
            _log.debug("a fetch session is left to its broker: %s", error)

    def _retry_at_ms(self) -> int:
        self._failures_count += 1
        return now_ms() + self._backoff.pause_ms(self._failures_count)
