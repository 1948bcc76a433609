"""Shell: keeps records of one key in order where a retry topic asks for it: reads its log, puts records behind.

While a consumer reads no topic together with the retry topic of its group, all of it is one task that sleeps.

*Source:* `docs/how-to/retry-failed-records.md`.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final, cast

import attrs
import trio

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.types import CONSUMER_REPLICA_ID, IsolationLevel, TopicPartition
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.kernel.wire.messages.api_32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.kernel.wire.special_timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

from ..brokers import now_ms
from ..errors import BrokerError, ClientUsageError
from ..group.committed import OffsetAndMetadata
from ..links import reader_link
from ..offsets import list_offsets
from .key_order import KeyOrder, Rule, behind_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from odradek.kernel.machine.clock import Clock
    from odradek.kernel.peers.backoff import Backoff
    from odradek.kernel.types import Buffer
    from odradek.kernel.wire.messages.api_01_fetch import FetchResponse, PartitionData
    from odradek.kernel.wire.messages.api_32_describe_configs import DescribeConfigsResponse

    from ..brokers import Brokers
    from ..failed_records import FailedRecords
    from ..fetched_records import ConsumerRecord
    from ..fetcher import Fetcher
    from ..group.session import GroupSession
    from .key_order import Behind, Pair
    from .waiting_keys import WaitingKeys

_log = logging.getLogger(__name__)

ORDER_KEY: Final = "odradek.retry.order"
WAITING_MAX_KEY: Final = "odradek.retry.order.waiting.max"
_WAITING_MAX: Final = 100_000
_TOPIC_RESOURCE: Final = 2
_FETCH_WAIT_MS: Final = 500
_FETCH_BYTES: Final = 1 << 20
_VERSION_WITHOUT_IDS: Final = 12
"""The last version of Fetch that names topics."""
_NOTE: Final = re.compile(r"odradek\.retry\.order=([0-9]{1,18})")


def note_of(needed_from: int) -> str:
    """Return what is committed with a position in a retry topic: from where on its log says what is pending."""
    return f"odradek.retry.order={needed_from}"


def noted(committed: OffsetAndMetadata | None) -> int | None:
    """Return from where on a retry topic's log says what is pending; None where that was not committed."""
    found = None if committed is None else _NOTE.fullmatch(committed.metadata)
    return None if found is None else int(found[1])


@attrs.define
class OrderKeeper:
    """Keeps the order of one consumer's keys; `run` is a task of its crew.

    Attributes:
        group: What is subscribed to, and who looks up what was committed.
        brokers: The cluster.
        fetcher: Where it is asked what may be given.
        failed: Has the producer that puts records behind.
        backoff: Pauses after failures.
        clock: The wall clock: until when records wait is told in its time.
        api_timeout_ms: For everything that is asked once.
        announce: Has a poll that waits look again.
        order: What may be given.
    """

    group: GroupSession
    brokers: Brokers
    fetcher: Fetcher
    failed: FailedRecords
    backoff: Backoff
    clock: Clock
    api_timeout_ms: int
    announce: Callable[[], None]
    order: KeyOrder = attrs.field(init=False)
    _wake: trio.Event = attrs.field(init=False, factory=trio.Event)
    _error: ClientError | None = attrs.field(init=False, default=None)
    _readers: set[int] = attrs.field(init=False, factory=set)
    _failures_count: int = attrs.field(init=False, default=0)
    _behind_failures_count: int = attrs.field(init=False, default=0)
    _lonely_ms: int | None = attrs.field(init=False, default=None)
    _told: set[TopicPartition] = attrs.field(init=False, factory=set)

    def __attrs_post_init__(self) -> None:
        self.order = KeyOrder(self.failed.group_id)

    # What the consumer tells.

    def assigned(self) -> None:
        """Take note that other partitions are read now."""
        subscription = self.group.subscription
        self.order.follow(self.fetcher.assignment, () if subscription is None else subscription.topics)
        self.fetcher.sieve = None if self.order.is_idle else self.order
        self._lonely_ms = self._lonely_ms or now_ms() if self.order.lonely else None
        self._wake.set()

    def taken(self, partitions: Iterable[TopicPartition]) -> None:
        """Take note that these are read no more, or anew."""
        self.order.forget(partitions)
        self.assigned()

    def polled(self, *, has_records: bool) -> None:
        """Take note that a poll has looked for records: what has to be put behind others is.

        Raises:
            ClientError: There are none, and order cannot be kept: what is wrong stands in it.
        """
        if self.order.behind:
            self._wake.set()
        if self._error is not None and not has_records:
            error, self._error = self._error, None
            raise error

    def check(self, record: ConsumerRecord) -> None:
        """Make sure that a record may be failed.

        Raises:
            ClientUsageError: Its partition was taken away: who reads that now is given the record, too.
        """
        if self.order.is_ordered(record.topic) and record.topic_partition not in self.fetcher.assignment:
            raise ClientUsageError(
                f"{record.topic_partition} was taken away: who reads it now is given the record again"
            )

    def produced(self, record: ConsumerRecord, offset: int) -> None:
        """Take note that a record was failed, to this offset of the retry topic."""
        if not self.order.is_idle:
            self.order.produced(record.topic_partition, offset)
            self._wake.set()

    def note(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Add to positions that are to be committed what whoever goes on there has to know."""
        for partition, pair in self.order.pairs.items():
            if partition == pair.retry and partition in offsets and pair.pending is not None:
                known = offsets[partition]
                offsets[partition] = attrs.evolve(known, metadata=note_of(pair.pending.needed_from))

    # The task.

    async def run(self) -> None:
        """Keep order until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                self._wake = trio.Event()
                deadline_s = float("inf")
                try:
                    await self._turn(nursery)
                except ClientError as error:
                    self._failures_count += 1
                    deadline_s = trio.current_time() + self._failed(error, self._failures_count)
                else:
                    self._failures_count = 0
                if self._lonely_ms is not None:
                    deadline_s = min(deadline_s, (self._lonely_ms + self.api_timeout_ms) / 1_000)
                with trio.move_on_at(deadline_s):
                    await self._wake.wait()

    def _failed(self, error: ClientError, failures_count: int) -> float:
        """Tell the next poll of what will not pass; return after how many seconds to try again."""
        _log.debug("keeping the order of keys: %s", error)
        if not error.retriable:
            self._tell(error)
        return self.backoff.pause_ms(failures_count) / 1_000

    def _tell(self, error: ClientError) -> None:
        self._error = error
        self.announce()

    async def _turn(self, nursery: trio.Nursery) -> None:
        if self.order.unknown:
            await self._learn_rules()
        self._look_for_lonely()
        await self._begin_pairs()
        for node_id in self._by_leader():
            if node_id not in self._readers:
                self._readers.add(node_id)
                nursery.start_soon(self._read, node_id)
        for behind in self.order.take_behind():
            nursery.start_soon(self._put_behind, behind)

    async def _learn_rules(self) -> None:
        """Ask what retry topics ask for, that nobody has asked yet."""
        names = sorted(set(self.order.unknown.values()))
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=_TOPIC_RESOURCE,
                    resource_name=name,
                    configuration_keys=[ORDER_KEY, WAITING_MAX_KEY],
                )
                for name in names
            ]
        )
        answer: DescribeConfigsResponse = await self.brokers.request_any(request)
        for item in answer.results:
            code = error_code(item.error_code)
            if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                _log.warning("whether %s asks for order this client may not see: it keeps none", item.resource_name)
            elif code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise BrokerError(code, f"what {item.resource_name} asks for: {code.text}")
            configs = {config.name: config.value or "" for config in item.configs}
            maximum = configs.get(WAITING_MAX_KEY, "")
            rule = Rule(
                configs.get(ORDER_KEY) == "key",
                int(maximum) if maximum.isdecimal() else _WAITING_MAX,
                is_there=code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
            self.order.learned(item.resource_name, rule)
        self.assigned()
        self.announce()

    def _look_for_lonely(self) -> None:
        """Tell of partitions whose retry partitions are read elsewhere, where that lasts."""
        lonely = self.order.lonely
        if not lonely or self._lonely_ms is None or now_ms() < self._lonely_ms + self.api_timeout_ms:
            return
        self._lonely_ms = now_ms()
        self._tell(
            ClientUsageError(
                f"{ORDER_KEY}=key: {', '.join(map(str, sorted(lonely)))} cannot be read here, for the retry topic's "
                "partition of that number is read by another member: have an assignor that gives both to one, such as "
                "range"
            )
        )

    async def _begin_pairs(self) -> None:
        """Find out from where on, and up to where, the logs of new pairs are to be read."""
        new = {pair.retry: pair for pair in self.order.pairs.values() if pair.pending is None}
        if not new:
            return
        asked = [each for pair in new.values() for each in (pair.home, pair.retry)]
        committed = await self.group.committer.fetch(asked, timeout_ms=self.api_timeout_ms)
        starts = await self._list(new, EARLIEST_TIMESTAMP)
        ends = await self._list(new, LATEST_TIMESTAMP)
        for retry, pair in new.items():
            if self.order.pairs.get(retry) is pair:
                known, home = committed[retry], committed[pair.home]
                pair.begin(
                    noted=noted(known),
                    position=None if known is None else known.offset,
                    log=range(starts[retry], ends[retry]),
                    home_position=None if home is None else home.offset,
                )
        self.announce()

    async def _list(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        found = await list_offsets(
            self.brokers,
            dict.fromkeys(partitions, timestamp),
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            timeout_ms=self.api_timeout_ms,
            backoff=self.backoff,
        )
        return {partition: item.offset for partition, item in found.items()}

    # Reading.

    def _by_leader(self) -> dict[int, dict[TopicPartition, WaitingKeys]]:
        found: dict[int, dict[TopicPartition, WaitingKeys]] = {}
        for pair in self.order.pairs.values():
            leader = self.brokers.cluster.leader_of(pair.retry)
            if pair.pending is not None and leader is not None:
                found.setdefault(leader, {})[pair.retry] = pair.pending
            elif leader is None:
                self.brokers.request_update()
        return found

    async def _read(self, node_id: int) -> None:
        """Read the logs that a broker leads until it leads none of them."""
        failures_count = 0
        try:
            while wanted := self._by_leader().get(node_id):
                try:
                    response: FetchResponse = await self.brokers.request(
                        reader_link(node_id), _fetch_request(wanted), version_max=_VERSION_WITHOUT_IDS
                    )
                except ClientError as error:
                    _log.debug("reading retry topics of broker %d: %s", node_id, error)
                    is_well = False
                else:
                    is_well = self._take_answer(wanted, response)
                failures_count = 0 if is_well else failures_count + 1
                if not is_well:
                    self.brokers.doubt_leaders(wanted)
                    await trio.sleep(self.backoff.pause_ms(failures_count) / 1_000)
        finally:
            self._readers.discard(node_id)
            self._wake.set()

    def _take_answer(self, wanted: Mapping[TopicPartition, WaitingKeys], response: FetchResponse) -> bool:
        is_well = error_code(response.error_code) is ErrorCode.NONE
        for topic in response.responses:
            for data in topic.partitions:
                partition = TopicPartition(topic.topic, data.partition_index)
                pair = self.order.pairs.get(partition)
                if pair is not None and pair.pending is wanted.get(partition):
                    is_well = self._take_partition(pair, data) and is_well
        return is_well

    def _take_partition(self, pair: Pair, data: PartitionData) -> bool:
        code, pending = error_code(data.error_code), pair.pending
        assert pending is not None, "it was asked for"
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            pair.lost()
            self._wake.set()
            return False
        if code is not ErrorCode.NONE:
            return False
        was_known, count = pair.is_known, len(pending)
        try:
            pending.read(cast("Buffer", data.records or b""))  # decoded, it is a view
        except CorruptRecordsError as error:
            told = f"{pair.retry} from offset {pending.next_offset}, read for the order of keys: {error}"
            self._tell(BrokerError(ErrorCode.CORRUPT_MESSAGE, told))
            return False
        pending.start_advanced(data.log_start_offset)
        if pair.is_known and (not was_known or len(pending) != count):
            self._tell_whether_full(pair)
        if data.records:
            self.announce()
        return True

    def _tell_whether_full(self, pair: Pair) -> None:
        if not pair.is_full:
            self._told.discard(pair.home)
        elif pair.home not in self._told:
            self._told.add(pair.home)
            assert pair.pending is not None, "the log is known"
            told = "%s is read no further while %d records wait in %s: that is as many as %s allows"
            _log.warning(told, pair.home, len(pair.pending), pair.retry, WAITING_MAX_KEY)

    # Putting behind.

    async def _put_behind(self, behind: Behind) -> None:
        """Produce records to the retry topic, in order; those that could not be are found where they are."""
        end_offset = 0
        try:
            producer = await self.failed.producer_for([record for record, _ in behind.records])
            deliveries = [
                await producer.enqueue(
                    behind.pair.retry.topic,
                    record.value,
                    key=record.key,
                    headers=behind_headers(record, behind.pair, due_ms),
                    partition=behind.pair.retry.partition,
                )
                for record, due_ms in behind.dues(self.clock.now_ms())
            ]
            failure: ClientError | None = None
            for delivery in deliveries:
                try:
                    end_offset = (await delivery.wait()).offset + 1
                except ClientError as error:
                    failure = error
            if failure is not None:
                raise failure
        except ClientError as error:
            self._behind_failures_count += 1
            await trio.sleep(self._failed(error, self._behind_failures_count))
        else:
            self._behind_failures_count = 0
        finally:
            self.order.put(behind, end_offset)
            self.announce()


def _fetch_request(wanted: Mapping[TopicPartition, WaitingKeys]) -> FetchRequest:
    topics: dict[str, FetchTopic] = {}
    for partition, pending in wanted.items():
        topic = topics.setdefault(partition.topic, FetchTopic(topic=partition.topic, partitions=[]))
        topic.partitions.append(
            FetchPartition(
                partition=partition.partition,
                fetch_offset=pending.next_offset,
                partition_max_bytes=_FETCH_BYTES,
            )
        )
    return FetchRequest(
        replica_id=CONSUMER_REPLICA_ID,
        max_wait_ms=_FETCH_WAIT_MS,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        topics=list(topics.values()),
    )
