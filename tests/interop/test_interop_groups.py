"""Groups of real clients, several libraries in one: they share partitions, come and go, and read every record once."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import pytest

from odradek.kernel.wire.messages.api_09_offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from odradek.kernel.wire.messages.api_15_describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.kernel.wire.messages.api_16_list_groups import ListGroupsRequest, ListGroupsResponse

from ..broker.broker_process import Client as Connection
from .brokers import mortal_broker
from .clients import CLIENTS, MissingClientError, skip_or_fail
from .driver import Driver
from .member import LIMIT_S, Members, members_in
from .records import PRODUCE, create_topic, record
from .transactor import reader_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.interop

PARTITIONS = 8
MEMBERS = [name for name, client in CLIENTS.items() if client.member is not None]
MIXED = [name for name in MEMBERS if "range" in CLIENTS[name].assignors]
COOPERATIVE = [name for name in MEMBERS if "cooperative-sticky" in CLIENTS[name].assignors]
CONSUMER_PROTOCOL = [name for name in MEMBERS if CLIENTS[name].has_consumer_protocol]


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    with members_in(tmp_path) as running:
        yield running


def member_command(name: str) -> list[str]:
    """Return how a client's member is run."""
    member = CLIENTS[name].member
    assert member is not None
    try:
        return member()
    except MissingClientError as error:
        skip_or_fail(f"{name} is not on this machine; needs {error}")
        raise


class Group:
    """A group that reads one topic: its members, and the records that were produced for it."""

    def __init__(self, address: str, topic: str, members: Members, produce: Callable[..., Any]) -> None:
        self.address, self.topic, self.members = address, topic, members
        self._produce = produce
        self.produced: set[str] = set()
        create_topic(address, topic, partitions=PARTITIONS)

    def join(self, client: str, *options: str, name: str = "") -> str:
        """Have a client's member join; return its name."""
        name = name or client
        self.members.start(name, member_command(client), self.address, self.topic, self.topic, *options)
        return name

    def produce(self, count: int) -> None:
        """Produce records to every partition, each with a value of its own."""
        for partition in range(PARTITIONS):
            values = [f"{len(self.produced) + number}" for number in range(count)]
            self.produced.update(values)
            self._produce(
                topic=self.topic,
                partition=partition,
                records=[record(number, value.encode()) for number, value in enumerate(values)],
            )

    def wait_shared(self, members_count: int) -> None:
        """Wait until all partitions are owned, each once, evenly, by so many members."""
        shares = [(PARTITIONS + number) // members_count for number in range(members_count)]

        def is_shared() -> bool:
            owned = self.members.owned()
            everything = sorted(partition for each in owned for partition in each)
            return everything == list(range(PARTITIONS)) and sorted(map(len, owned)) == shares

        try:
            self.members.wait_until(is_shared, f"partitions shared as {shares}")
        except AssertionError as error:
            raise AssertionError(f"{error}\nThe broker says: {self._described()}") from None

    def _described(self) -> str:
        """Return the group's state and who its members are, as the broker knows them."""
        with Connection(self.address) as connection:
            answer = connection.ask(DescribeGroupsRequest(groups=[self.topic]), 5)
        assert isinstance(answer, DescribeGroupsResponse)
        (group,) = answer.groups
        return f"{group.group_state}, {sorted(member.client_id for member in group.members)}"

    def wait_read(self) -> None:
        """Wait until everything that was produced has been read."""
        self.members.wait_until(lambda: len(self.members.records) >= len(self.produced), "all records read")

    def wait_committed(self) -> None:
        """Wait until everything that was produced is committed: kcat does that a little later than it tells."""
        deadline_s = time.monotonic() + LIMIT_S  # noqa: TID251 - a limit for a client that hangs
        asked = OffsetFetchRequest(group_id=self.topic, topics=None)
        committed = 0
        with Connection(self.address) as connection:
            while committed < len(self.produced):
                assert time.monotonic() < deadline_s, f"{committed} committed"  # noqa: TID251 - as above
                answer = connection.ask(asked, 7)
                assert isinstance(answer, OffsetFetchResponse)
                committed = sum(each.committed_offset for topic in answer.topics for each in topic.partitions)

    def assert_read_once(self) -> None:
        """Every record was read, once."""
        assert sorted(value for _, _, value in self.members.records) == sorted(self.produced)


@pytest.fixture
def group(address: str, topic: str, members: Members, driver_of: Callable[[str], Driver]) -> Group:
    def produce(**arguments: Any) -> None:
        driver_of("librdkafka").do("produce", **PRODUCE, **arguments)

    return Group(address, topic, members, produce)


def joined_evenly(group: Group, names: Sequence[str], *options: str) -> None:
    for count, name in enumerate(names, 1):
        group.join(name, *options)
        group.wait_shared(count)


def test_all_libraries_share_one_group_and_leave_it_one_by_one(group: Group) -> None:
    for name in MIXED:
        group.join(name, "--assignor", "range")
    group.wait_shared(len(MIXED))
    group.produce(10)
    group.wait_read()
    for gone, name in enumerate(MIXED[:-1], 1):
        group.members.leave(name)
        group.wait_shared(len(MIXED) - gone)
        group.produce(1)
        group.wait_read()

    group.assert_read_once()


@pytest.mark.parametrize("client", ["librdkafka", "kafkajs", "java"])
def test_a_member_takes_over_what_a_dead_one_had(client: str, group: Group) -> None:
    group.join(client, name="stays")
    group.join(client, name="dies")
    group.wait_shared(2)
    group.produce(5)
    group.wait_read()
    group.members.kill("dies")
    group.produce(5)
    group.wait_shared(1)
    group.wait_read()

    group.assert_read_once()


def test_cooperative_members_keep_what_they_read(group: Group) -> None:
    joined_evenly(group, COOPERATIVE, "--assignor", "cooperative-sticky")
    group.produce(5)
    group.wait_read()

    group.assert_read_once()
    history = group.members.history_of(COOPERATIVE[0])
    assert all(later <= earlier for earlier, later in itertools.pairwise(history))


@pytest.mark.parametrize("client", ["librdkafka", "java", "franz-go"])
def test_a_static_member_comes_back_to_what_it_had(client: str, group: Group) -> None:
    patient = ("--session", "45000")
    group.join(client, "--instance", "a", *patient, name="a")
    group.join(client, "--instance", "b", *patient, name="b")
    group.wait_shared(2)
    kept = group.members.history_of("a")
    had = group.members.owned_by("b")
    group.members.kill("b")
    group.join(client, "--instance", "b", *patient, name="b")
    group.wait_shared(2)
    group.produce(5)
    group.wait_read()

    group.assert_read_once()
    assert group.members.owned_by("b") == had
    assert group.members.history_of("a") == kept


def test_members_of_the_consumer_protocol_share_a_group(group: Group) -> None:
    joined_evenly(group, CONSUMER_PROTOCOL, "--protocol", "consumer")
    group.produce(5)
    group.wait_read()
    group.members.leave(CONSUMER_PROTOCOL[0])
    group.wait_shared(1)
    group.produce(5)
    group.wait_read()

    group.assert_read_once()


def test_a_group_is_upgraded_to_the_consumer_protocol_while_it_reads(group: Group) -> None:
    group.join("java", "--assignor", "range", name="classic")
    group.wait_shared(1)
    group.produce(5)
    group.wait_read()
    group.join("librdkafka", "--protocol", "consumer", name="modern")
    group.wait_shared(2)
    group.produce(5)
    group.wait_read()
    group.members.leave("classic")
    group.wait_shared(1)
    group.produce(5)
    group.wait_read()

    group.assert_read_once()


def test_a_group_is_downgraded_to_the_classic_protocol_while_it_reads(group: Group) -> None:
    modern, classic = ("modern-1", "modern-2"), ("classic-1", "classic-2")
    for name in modern:
        group.join("librdkafka", "--protocol", "consumer", name=name)
    group.wait_shared(2)
    kinds = [kind_of_group(group)]
    for old, new in zip(modern, classic, strict=True):
        group.produce(2)
        group.join("librdkafka", "--protocol", "classic", name=new)
        group.wait_shared(3)
        group.produce(2)
        group.members.leave(old)
        group.wait_shared(2)
        kinds.append(kind_of_group(group))
    group.produce(2)
    group.wait_read()

    group.assert_read_once()
    assert kinds == ["consumer", "consumer", "classic"]


def kind_of_group(group: Group) -> str:
    """Return the protocol of the group, as the broker lists it."""
    with Connection(group.address) as connection:
        response = connection.ask(ListGroupsRequest(states_filter=[], types_filter=[]), 5)
    assert isinstance(response, ListGroupsResponse)
    (kind,) = [each.group_type for each in response.groups if each.group_id == group.topic]
    return kind


def wait_split(members: Members, wanted: set[str], count: int) -> None:
    """Wait until so many members have the partitions, each as many as the others."""

    def is_split() -> bool:
        owned = members.owned()
        return set().union(*owned) == wanted and [len(each) for each in owned] == [len(wanted) // count] * count

    members.wait_until(is_split, f"{wanted} split in {count}")


def test_members_subscribe_to_what_the_broker_matches(
    address: str, topic: str, members: Members, driver_of: Callable[[str], Driver]
) -> None:
    expressions = {
        "librdkafka": f"{topic}-(red|blue)$",  # it tries them as POSIX's, before the broker sees them
        "java": f"(?P<what>{topic})-(?i:RED|BLUE)",  # these are RE2's
    }
    values = {colour: [f"{colour}-{number}" for number in range(10)] for colour in ("red", "blue", "green")}
    for colour in values:
        create_topic(address, f"{topic}-{colour}", partitions=2)
    wanted = {f"{topic}-{colour}:{partition}" for colour in ("red", "blue") for partition in range(2)}
    options = ("--protocol", "consumer", "--subscribe", "pattern")
    for count, (client, expression) in enumerate(expressions.items(), 1):
        members.start(client, member_command(client), address, topic, expression, *options)
        wait_split(members, wanted, count)
    for colour, some in values.items():
        records = [record(number, value.encode()) for number, value in enumerate(some)]
        driver_of("librdkafka").do("produce", topic=f"{topic}-{colour}", partition=0, records=records, **PRODUCE)
    members.wait_until(lambda: len(members.records) >= 20, "all records read")

    assert sorted(value for _, _, value in members.records) == sorted([*values["red"], *values["blue"]])


def test_a_group_outlives_the_death_of_the_broker(members: Members, tmp_path: Path) -> None:
    with mortal_broker(tmp_path) as broker, reader_at("librdkafka", broker.address, tmp_path) as driver:

        def produce(**arguments: Any) -> None:
            driver.do("produce", **PRODUCE, **arguments)

        group = Group(broker.address, "kept", members, produce)
        for name in ("kcat", "librdkafka", "java", "franz-go"):
            group.join(name, "--session", "30000")  # nobody is taken for dead while the broker is
        group.wait_shared(4)
        group.produce(5)
        group.wait_read()
        group.wait_committed()
        broker.kill()
        broker.restart()
        group.produce(5)
        group.wait_read()
        group.wait_shared(4)

        group.assert_read_once()
