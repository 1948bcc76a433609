"""No request holds up others for long: a table has every API key, what bounds it, and requests that ask for much.

How long a broker works in one go is counted, not timed: the calls of functions between two points at which other tasks
may run. What walks its items in one go makes some ten calls for each.
"""

from __future__ import annotations

import cProfile
import gc
import sys
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
import trio

from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.contracts.coordinator import CoordinatorResult
from odradek.kernel.contracts.pieces import ListPieces
from odradek.kernel.dispatch.wide_produce import AT_ONCE_MAX
from odradek.kernel.partitions.producer_snapshot import ProducerSnapshotEntry
from odradek.kernel.partitions.staged_writes import FIRST_BATCHES_MAX
from odradek.kernel.types import ZERO_ID
from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.headers import decode_response_header, encode_request
from odradek.kernel.wire.messages.api_00_produce import ProduceRequest
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from odradek.kernel.wire.registry import APIS
from odradek.plugins.transactions.metadata import TransactionMetadata, TransactionRecord
from tests.waiting import PATIENCE_S

from .house import batch
from .memory_client import MemoryClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

MANY: Final = 5_000
"""So many partitions has the topic `wide`, and so many items a request asks for."""
CALLS_MAX: Final = 50_000
"""So many calls may be made in one go: five to ten milliseconds of work."""
NUMBERS: Final = range(MANY)
NAMES: Final = [f"name-{number}" for number in NUMBERS]


class How(Enum):
    """What keeps the requests of an API from holding up others."""

    FIXED = "they have, and are answered, a fixed number of items"
    PIECES = "the handler's `pieces` cut them into short ones"
    SLICES = "they are decoded and answered in slices, by a task or the controller, or looked at briefly"


class Bound(NamedTuple):
    """How an API is bounded, and requests that ask for many items: fields by name, in the newest version.

    A value of "WIDE_ID" stands for the id of the topic `wide`, one of "PRODUCER_ID" for that of the producer `t`.
    """

    how: How
    requests: tuple[dict[str, Any], ...] = ()


FIXED: Final = Bound(How.FIXED)


def pieces(*requests: dict[str, Any]) -> Bound:
    return Bound(How.PIECES, requests)


def slices(*requests: dict[str, Any]) -> Bound:
    return Bound(How.SLICES, requests)


def of_wide(name: str, field: str, items: Iterable[Any]) -> list[dict[str, Any]]:
    """The topic `wide` under its name, with items for its partitions."""
    return [{name: "wide", field: list(items)}]


def of_wide_id(field: str, items: Iterable[Any]) -> list[dict[str, Any]]:
    """The same under its id."""
    return [{"topic_id": "WIDE_ID", field: list(items)}]


COMMITS: Final = [{"partition_index": number, "committed_offset": 1, "committed_metadata": ""} for number in NUMBERS]
RESOURCES: Final = [{"resource_type": 2, "resource_name": name, "configs": []} for name in NAMES[:1000]]
FETCHED: Final = of_wide_id("partitions", ({"partition": n, "partition_max_bytes": 1 << 20} for n in NUMBERS))
FETCHED_AT_END: Final = of_wide_id("partitions", ({"partition": n, "fetch_offset": 1} for n in NUMBERS))
FETCHED_OF_NOBODY: Final = of_wide_id("partitions", ({"partition": MANY + number} for number in range(20 * MANY)))
SHARED: Final = of_wide_id("partitions", ({"partition_index": number} for number in NUMBERS))
SHARED_STATE: Final = of_wide_id("partitions", ({"partition": number} for number in NUMBERS))
FIRST: Final = (19,)
"""Make what others ask for."""
LAST: Final = (37, 64, 20)
"""After these there is another world."""
BY_THE_CLOCK: Final = frozenset(
    (
        "checkpoint",
        "keep_producers",
        "forget_producers",
        "give_up_segments",
        "remove_files",
        "flush_closed_segments",
        "retry_failed_logs",
        "flush_by_time",
        "retention",
        "compaction",
    )
)
"""Tasks that do their work however few clients ask for anything."""

ACL: Final = {"operation": 3, "permission_type": 3}
GROUP: Final = {"group_id": "g", "member_id": "", "generation_id_or_member_epoch": -1}

BOUNDS: Final[dict[int, Bound]] = {
    0: slices(
        {
            "acks": 1,
            "timeout_ms": 1000,
            "topic_data": [
                {
                    "topic_id": "WIDE_ID",
                    "partition_data": [{"index": number, "records": batch(b"value")} for number in NUMBERS],
                }
            ],
        }
    ),
    1: slices(
        {"max_bytes": 1 << 20, "topics": FETCHED},
        {"max_bytes": 1 << 20, "min_bytes": 1, "max_wait_ms": 50, "topics": FETCHED_AT_END},
        {"max_bytes": 1 << 20, "topics": FETCHED_OF_NOBODY, "session_epoch": 0},
    ),
    2: pieces(
        {
            "replica_id": -1,
            "topics": of_wide(
                "name", "partitions", ({"partition_index": number, "timestamp": -1} for number in NUMBERS)
            ),
        },
        {
            "replica_id": -1,
            "topics": of_wide(
                "name", "partitions", ({"partition_index": number, "timestamp": 1_000} for number in NUMBERS)
            ),
        },
    ),
    3: slices(
        {"topics": None},
        {"topics": [{"name": "wide"}]},
        {"topics": [{"name": name} for name in NAMES], "allow_auto_topic_creation": False},
    ),
    8: pieces({**GROUP, "topics": [{"topic_id": "WIDE_ID", "partitions": COMMITS}]}),
    9: slices(
        {"groups": [{"group_id": "many", "topics": None}], "require_stable": True},
        {"groups": [{"group_id": "g", "topics": [{"topic_id": "WIDE_ID", "partition_indexes": list(NUMBERS)}]}]},
    ),
    10: pieces({"key_type": 0, "coordinator_keys": NAMES}),
    11: slices(
        {
            "group_id": "joined",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "member_id": "",
            "group_instance_id": "one",
            "protocol_type": "consumer",
            "protocols": [{"name": name, "metadata": b""} for name in NAMES],
        }
    ),
    12: FIXED,
    13: pieces({"group_id": "g", "members": [{"member_id": name} for name in NAMES]}),
    14: slices(
        {
            "group_id": "g",
            "member_id": "m",
            "assignments": [{"member_id": name, "assignment": b""} for name in NAMES],
        }
    ),
    15: pieces({"groups": NAMES}),
    16: slices({}, {"states_filter": ["Empty"], "types_filter": ["classic"]}),
    17: FIXED,
    18: FIXED,
    19: slices(
        {"topics": [{"name": "wider", "num_partitions": MANY, "replication_factor": 1}], "timeout_ms": 60_000},
        {
            "topics": [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in NAMES[:500]],
            "timeout_ms": 60_000,
        },
    ),
    20: slices(
        {"topics": [{"name": name} for name in NAMES[:1000]], "timeout_ms": 60_000},
        {"topics": [{"name": "wider"}], "timeout_ms": 60_000},
    ),
    21: pieces(
        {
            "timeout_ms": 1000,
            "topics": of_wide("name", "partitions", ({"partition_index": number, "offset": 0} for number in NUMBERS)),
        }
    ),
    22: FIXED,
    23: pieces(
        {"topics": of_wide("topic", "partitions", ({"partition": number, "leader_epoch": 0} for number in NUMBERS))}
    ),
    24: slices(
        {
            "transactions": [
                {
                    "transactional_id": "t",
                    "producer_id": "PRODUCER_ID",
                    "producer_epoch": 0,
                    "topics": of_wide("name", "partitions", NUMBERS),
                }
            ]
        }
    ),
    25: FIXED,
    26: slices({"transactional_id": "t", "producer_id": "PRODUCER_ID", "producer_epoch": 0, "committed": True}),
    27: pieces(
        {"markers": [{"producer_id": 1, "producer_epoch": 0, "topics": of_wide("name", "partition_indexes", NUMBERS)}]}
    ),
    28: pieces(
        {
            "transactional_id": "t",
            "group_id": "g",
            "producer_id": 1,
            "producer_epoch": 0,
            "member_id": "",
            "topics": of_wide("name", "partitions", COMMITS),
        }
    ),
    29: FIXED,
    30: pieces(
        {
            "creations": [
                {"resource_type": 2, "resource_name": name, "principal": "User:a", "host": "*", **ACL} for name in NAMES
            ]
        }
    ),
    31: pieces({"filters": [{"resource_type_filter": 2, "resource_name_filter": name, **ACL} for name in NAMES]}),
    32: pieces(
        {
            "resources": [{"resource_type": 2, "resource_name": name, "configuration_keys": None} for name in NAMES],
            "include_documentation": True,
        }
    ),
    33: slices({"resources": RESOURCES}),
    34: pieces({"dirs": [{"path": "/nowhere", "topics": of_wide("name", "partitions", NUMBERS)}]}),
    35: slices({"topics": None}, {"topics": of_wide("topic", "partitions", NUMBERS)}),
    36: FIXED,
    37: slices({"topics": [{"name": "wide", "count": 2 * MANY, "assignments": None}], "timeout_ms": 60_000}),
    38: FIXED,
    39: FIXED,
    40: FIXED,
    41: FIXED,
    42: pieces({"groups_names": NAMES}),
    43: slices(
        {"topic_partitions": None, "timeout_ms": 60_000},
        {"topic_partitions": of_wide("topic", "partitions", NUMBERS), "timeout_ms": 60_000},
    ),
    44: slices(
        *(
            {
                "resources": [
                    {"resource_type": kind, "resource_name": name, "configs": [{"name": key, "value": "1000000"}]}
                ]
            }
            for kind, name, key in ((2, "wide", "retention.ms"), (4, "", "log.retention.ms"))
        ),
        {"resources": RESOURCES},
    ),
    45: slices(
        {
            "timeout_ms": 60_000,
            "topics": of_wide("name", "partitions", ({"partition_index": n, "replicas": [1]} for n in NUMBERS)),
        }
    ),
    46: pieces({"topics": of_wide("name", "partition_indexes", NUMBERS)}, {"topics": None}),
    47: pieces({"group_id": "g", "topics": of_wide("name", "partitions", ({"partition_index": n} for n in NUMBERS))}),
    48: slices({"components": [{"entity_type": name, "match_type": 0, "match": name} for name in NAMES]}),
    49: pieces({"entries": [{"entity": [{"entity_type": "user", "entity_name": name}]} for name in NAMES]}),
    50: pieces({"users": [{"name": name} for name in NAMES]}),
    51: slices({"deletions": [{"name": name, "mechanism": 1} for name in NAMES]}),
    55: pieces({"topics": [{"topic_name": "wide", "partitions": [{"partition_index": n} for n in NUMBERS]}]}),
    57: slices({"feature_updates": [{"feature": name, "max_version_level": 1} for name in NAMES], "timeout_ms": 1000}),
    60: FIXED,
    61: pieces(
        {"topics": of_wide("name", "partition_indexes", NUMBERS)},
        {"topics": of_wide("name", "partition_indexes", NUMBERS[:1])},
        {"topics": of_wide("name", "partition_indexes", NUMBERS[1:200])},
    ),
    64: slices({"broker_id": 1}),
    65: pieces({"transactional_ids": NAMES}),
    66: slices({}, {"state_filters": ["Empty"]}, {"transactional_id_pattern": "name-.*"}),
    # Of the names 500 have topics by now; a member of a large group is told of them by a later heartbeat.
    68: slices(
        {
            "group_id": "consumers",
            "member_id": "AAAAAAAAAAAAAAAAAAAAAA",
            "member_epoch": 0,
            "rebalance_timeout_ms": 10_000,
            "subscribed_topic_names": ["wide", *NAMES],
            "topic_partitions": [],
        }
    ),
    69: pieces({"group_ids": NAMES}),
    74: slices({"resource_types": [2]}),
    75: slices({"topics": [], "response_partition_limit": 2000, "cursor": None}),
    76: slices({"group_id": "g", "subscribed_topic_names": NAMES}),
    77: pieces({"group_ids": NAMES}),
    78: slices({"group_id": "g", "topics": SHARED}),
    79: slices({"group_id": "g", "topics": SHARED}),
    80: slices({"voter_id": 2, "listeners": [{"name": name, "host": "localhost", "port": 9093} for name in NAMES]}),
    81: FIXED,
    **dict.fromkeys(range(83, 88), pieces({"group_id": "g", "topics": SHARED_STATE})),
    88: slices({"group_id": "g", "active_tasks": [{"subtopology_id": name, "partitions": [0]} for name in NAMES]}),
    89: pieces({"group_ids": NAMES}),
    90: pieces({"groups": [{"group_id": name, "topics": None} for name in NAMES]}),
    91: slices(
        {"group_id": "g", "topics": of_wide("topic_name", "partitions", ({"partition_index": n} for n in NUMBERS))}
    ),
    92: slices({"group_id": "g", "topics": [{"topic_name": name} for name in NAMES]}),
}


def made(cls: type[Any], fields: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    """Make a message, and what it consists of, from fields by name."""
    values = {}
    for spec in cls.__fields__:
        if spec.name not in fields:
            continue
        value = fields[spec.name]
        if spec.struct is not None and value is not None:
            value = [made(spec.struct, item, known) for item in value]
        values[spec.name] = known.get(value, value) if isinstance(value, str) else value
    return cls(**values)


class LongestStep(trio.abc.Instrument):
    """Counts the calls that each step of a task makes, but for the test's own and for those that come by the clock."""

    def __init__(self) -> None:
        self.calls = 0
        self.task = ""
        self._own = trio.lowlevel.current_task()
        self._profile = cProfile.Profile(subcalls=False)
        self._is_counting = False

    def begin(self) -> None:
        self._is_counting = True
        self._profile.enable()

    def end(self, name: str) -> None:
        if not self._is_counting:
            return
        self._profile.disable()
        self._is_counting = False
        calls = sum(entry.callcount for entry in self._profile.getstats())
        self._profile.clear()
        if calls > self.calls:
            self.calls, self.task = calls, name

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is not self._own and task.name not in BY_THE_CLOCK:
            self.begin()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.end(task.name)


class World:
    """A broker with a wide topic and many groups, and what its requests take."""

    def __init__(self, broker: Broker) -> None:
        assert broker.parts is not None
        self.parts = broker.parts
        self.router = self.parts.requests.router
        self.known: dict[str, Any] = {"WIDE_ID": ZERO_ID}

    async def fill(self) -> None:
        """Make what requests ask for, but for the topics that the requests themselves make."""
        wide = CreatableTopic(name="wide", num_partitions=MANY, replication_factor=1)
        await self.parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[wide], timeout_ms=60_000))
        self.known["WIDE_ID"] = self.parts.published.image.topics_by_name["wide"].topic_id
        await self.settle()
        self.fill_producers()
        for key_type in (0, 1):
            find = partial(self.ask, 10, {"key_type": key_type, "coordinator_keys": ["any"]})
            await until(find, lambda answer: not answer.coordinators[0].error_code)
        await until(lambda: self.ask(8, commit("g")), lambda answer: not answer.topics[0].partitions[0].error_code)
        await self.ask(8, commit("many", COMMITS))
        begin = partial(self.ask, 22, {"transactional_id": "t", "transaction_timeout_ms": 60_000})
        self.known["PRODUCER_ID"] = (await until(begin, lambda answer: not answer.error_code)).producer_id
        await self.parts.requests.coordinators.by_key_type[1].call(0, begin_producers)
        async with trio.open_nursery() as nursery:
            for name in NAMES:
                nursery.start_soon(self.ask, 8, commit(name))

    def fill_producers(self) -> None:
        """Have one partition know of many producers, and others of some: one by one they would have to write to it."""
        now_ms = self.parts.machine.clock.now_ms()
        for index, count in [(0, 4 * MANY), *((index, MANY // 50) for index in range(1, 200))]:
            replica = self.parts.logs.replicas.get("wide", index)
            known = range(2_000_000, 2_000_000 + count)
            replica.producers.load(
                [ProducerSnapshotEntry(each, 0, 0, 0, 0, now_ms, -1, -1) for each in known], (), now_ms
            )

    async def settle(self) -> None:
        """Wait until this broker has all partitions that the metadata gives it, and transactions that end are over."""
        image = self.parts.published.image
        wanted = {topic.name: len(topic.partitions) for topic in image.topics_by_name.values()}

        async def found() -> dict[str, int]:
            return {name: len(topic.partitions) for name, topic in self.parts.logs.replicas.topics.items()}

        await until(found, lambda counts: counts == wanted)

        async def missing() -> int:
            runtime = self.parts.requests.coordinators.by_key_type[1]
            return sum(shard.missing_markers_count for _, shard in runtime.shards())

        await until(missing, lambda count: not count)

    async def ask(self, key: int, fields: Mapping[str, Any], steps: LongestStep | None = None) -> Any:
        """Ask in the newest version; count what is done in the turn in which the request came."""
        client = MemoryClient(self.router)
        version = APIS[key].versions.highest
        frame = encode_request(made(APIS[key].request, fields, self.known), version, 1, "test").join()
        if steps is not None:
            steps.begin()
        client.send_bytes(frame)
        client.turn()
        if steps is not None:
            steps.end("the reactor")
        while not client.connection.outgoing:
            assert not client.connection.is_finished, f"API key {key}: the connection was closed"
            await trio.sleep(0.001)
        body = memoryview(client.frames()[0])
        _, position = decode_response_header(body, key, version)
        return decode(APIS[key].response, body, version, position=position, exact=True)


async def until(ask: Callable[[], Awaitable[Any]], is_so: Callable[[Any], bool]) -> Any:
    """Ask again and again; return the answer that is so."""
    while not is_so(answer := await ask()):  # noqa: ASYNC110 - as a client does
        await trio.sleep(0.01)
    return answer


def begin_producers(_shard: Any, now_ms: int) -> CoordinatorResult[TransactionRecord, None]:
    """Write down very many transactional ids: asked for one by one, they take as long as all that is measured."""
    begun = [
        TransactionMetadata(name, number, producer_epoch=0, timeout_ms=60_000, last_update_timestamp=now_ms)
        for number, name in enumerate(NAMES, start=1_000_000)
    ]
    records = [TransactionRecord(each.transactional_id, each) for each in begun]
    return CoordinatorResult(records, None, is_atomic=False)


def commit(group: str, commits: Iterable[Any] = COMMITS[:1]) -> dict[str, Any]:
    return {**GROUP, "group_id": group, "topics": of_wide_id("partitions", commits)}


class MostMade(trio.abc.Instrument):
    """Counts the logs that are made in each step of a task: each takes up to half a millisecond of system calls."""

    def __init__(self, unmade_count: Callable[[], int]) -> None:
        self.count = 0
        self._unmade_count = unmade_count
        self._unmade_before = unmade_count()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        unmade = self._unmade_count()
        self.count = max(self.count, self._unmade_before - unmade)
        self._unmade_before = unmade


def work_in(tmp_path: Path, work: Callable[[World], Awaitable[None]], *, storage: str = "memory") -> None:
    async def main() -> None:
        settings = [
            f"odradek.storage={storage}",
            "offsets.topic.num.partitions=1",
            "transaction.state.log.num.partitions=1",
            "group.initial.rebalance.delay.ms=0",
            "auto.create.topics.enable=false",
        ]
        broker = Broker(
            read_broker_options(
                config=None, environment={}, options=settings, listen=["127.0.0.1:0"], data_dir=tmp_path / "data"
            )
        )
        with trio.fail_after(PATIENCE_S * 3):
            async with trio.open_nursery() as nursery:
                await nursery.start(broker.run)
                await work(World(broker))
                broker.stop()

    trace = sys.gettrace()
    sys.settrace(None)  # where coverage is measured: it would take three times as long, and shows nothing new
    try:
        trio.run(main)
    finally:
        sys.settrace(trace)


def test_the_table_has_every_api_and_says_of_each_what_is_so(tmp_path: Path) -> None:
    told: dict[str, str] = {}

    async def work(world: World) -> None:
        assert sorted(world.router.routes) == sorted(BOUNDS)
        for key, route in world.router.routes.items():
            how, requests = BOUNDS[key]
            has_pieces = isinstance(getattr(route.handler, "pieces", None), ListPieces)
            if how is How.PIECES and not has_pieces:
                told[route.name] = "has no pieces"
            if bool(requests) is (how is How.FIXED):
                told[route.name] = "asks for much only where it can"

    work_in(tmp_path, work)

    assert told == {}


def test_a_request_for_many_items_is_worked_on_in_short_steps(tmp_path: Path) -> None:
    longest: dict[tuple[str, int], tuple[int, str]] = {}

    async def work(world: World) -> None:
        await world.fill()
        gc.collect()
        for key in (*FIRST, *(key for key in BOUNDS if key not in (*FIRST, *LAST)), *LAST):
            for number, fields in enumerate(BOUNDS[key].requests):
                steps = LongestStep()
                trio.lowlevel.add_instrument(steps)
                await world.ask(key, fields, steps)
                await world.settle()
                trio.lowlevel.remove_instrument(steps)
                longest[APIS[key].name, number] = steps.calls, steps.task

    work_in(tmp_path, work)

    assert {each: found for each, found in longest.items() if found[0] > CALLS_MAX} == {}


def test_upkeep_looks_at_many_replicas_in_short_steps(tmp_path: Path) -> None:
    longest: dict[str, int] = {}

    async def work(world: World) -> None:
        wide = CreatableTopic(name="wide", num_partitions=MANY, replication_factor=1)
        await world.parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[wide], timeout_ms=60_000))
        await world.settle()
        upkeep = world.parts.logs.upkeep
        for look in (
            upkeep.keep_producers,
            upkeep.keep_rolled,
            upkeep.forget_producers,
            upkeep.give_up_segments,
            upkeep.flush_closed_segments,
        ):
            steps = LongestStep()
            trio.lowlevel.add_instrument(steps)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(look, name="looked at")
            trio.lowlevel.remove_instrument(steps)
            longest[look.__name__] = steps.calls

    work_in(tmp_path, work)

    assert {name: calls for name, calls in longest.items() if calls > CALLS_MAX // 2} == {}


@pytest.mark.parametrize("partitions_count", [AT_ONCE_MAX, 2 * AT_ONCE_MAX])
def test_a_produce_for_many_new_partitions_makes_few_logs_in_one_turn(tmp_path: Path, partitions_count: int) -> None:
    found: list[tuple[int, int, set[int]]] = []

    async def work(world: World) -> None:
        new = CreatableTopic(name="wide", num_partitions=partitions_count, replication_factor=1)
        await world.parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[new], timeout_ms=60_000))
        await world.settle()
        world.known["WIDE_ID"] = world.parts.published.image.topics_by_name["wide"].topic_id
        unmade_count = world.parts.logs.replicas.unmade_logs_count
        data = [{"index": number, "records": batch(b"value")} for number in range(partitions_count)]
        topics = [{"topic_id": "WIDE_ID", "partition_data": data}]
        most, unmade_before = MostMade(unmade_count), unmade_count()
        trio.lowlevel.add_instrument(most)
        answer = await world.ask(0, {"acks": 1, "timeout_ms": 1000, "topic_data": topics})
        await trio.lowlevel.checkpoint()
        trio.lowlevel.remove_instrument(most)
        errors = {part.error_code for topic in answer.responses for part in topic.partition_responses}
        found.append((unmade_before - unmade_count(), most.count, errors))

    work_in(tmp_path, work, storage="segment")

    ((made, made_at_once_max, errors),) = found
    assert (made, errors) == (partitions_count, {0})
    assert 0 < made_at_once_max <= FIRST_BATCHES_MAX


@pytest.mark.parametrize("acks", [1, -1, 0])
def test_first_batches_of_many_requests_make_few_logs_in_one_turn(tmp_path: Path, acks: int) -> None:
    count = 5 * FIRST_BATCHES_MAX
    made_by_turn: list[int] = []
    found: list[tuple[int, set[int]]] = []

    async def work(world: World) -> None:
        new = CreatableTopic(name="wide", num_partitions=count, replication_factor=1)
        await world.parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[new], timeout_ms=60_000))
        await world.settle()
        world.known["WIDE_ID"] = world.parts.published.image.topics_by_name["wide"].topic_id
        replicas = world.parts.logs.replicas
        unmade_before = replicas.unmade_logs_count()
        clients = [MemoryClient(world.router) for _ in range(count)]
        for number, client in enumerate(clients):
            data = [{"topic_id": "WIDE_ID", "partition_data": [{"index": number, "records": batch(b"value")}]}]
            fields = {"acks": acks, "timeout_ms": 30_000, "topic_data": data}
            client.send(made(ProduceRequest, fields, world.known), APIS[0].versions.highest)
        while replicas.unmade_logs_count() > unmade_before - count:
            unmade = replicas.unmade_logs_count()
            world.router.turn_ended()
            made_by_turn.append(unmade - replicas.unmade_logs_count())
        answers: list[Any] = [answer for client in clients for answer in client.received()]
        errors = {answer.responses[0].partition_responses[0].error_code for answer in answers}
        ends = {replica.high_watermark for replica in replicas.topics["wide"].partitions.values()}
        assert ends == {1}
        found.append((len(answers), errors))

    work_in(tmp_path, work, storage="segment")

    assert made_by_turn == [FIRST_BATCHES_MAX] * 5
    assert found == [(count, {0}) if acks else (0, set())]


def test_who_is_put_off_is_written_by_turns_that_come_by_themselves(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        new = CreatableTopic(name="wide", num_partitions=3 * FIRST_BATCHES_MAX, replication_factor=1)
        await world.parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[new], timeout_ms=60_000))
        await world.settle()
        world.known["WIDE_ID"] = world.parts.published.image.topics_by_name["wide"].topic_id
        clients = [MemoryClient(world.router) for _ in range(3 * FIRST_BATCHES_MAX)]
        for number, client in enumerate(clients):
            data = [{"topic_id": "WIDE_ID", "partition_data": [{"index": number, "records": batch(b"value")}]}]
            client.send(made(ProduceRequest, {"acks": 1, "timeout_ms": 30_000, "topic_data": data}, world.known), 13)

        async def answered() -> int:
            return sum(1 for client in clients if client.connection.outgoing)

        await until(answered, lambda found: found == len(clients))

    work_in(tmp_path, work, storage="segment")
