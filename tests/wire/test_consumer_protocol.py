"""The consumer protocol's bytes against real members, kafka-python and kio.

The golden bytes were read with DescribeGroups from Apache Kafka 4.3.1 on 2026-11-21: groups of librdkafka 2.16.1
(client ids c0, c1) and of Java's ConsoleConsumer 4.3.1 (`client.rack=r1`), all subscribed to a (3 partitions) and
b (2 partitions).
"""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from odradek.kernel.errors import MalformedRequestError
from odradek.kernel.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    new_assignment,
    new_subscription,
    partitions_by_topic,
)

SUBSCRIPTIONS: dict[str, tuple[str, ConsumerProtocolSubscription]] = {
    "librdkafka, range": (
        "0003000000020001610001620000000000000000ffffffff0000",
        new_subscription(["a", "b"], owned={}, user_data=b"", rack_id=""),
    ),
    "Java, range": (
        "000300000002000161000162ffffffff00000000ffffffff00027231",
        new_subscription(["a", "b"], owned={}, rack_id="r1"),
    ),
    "Java, sticky, second generation": (
        "0003000000020001610001620000002a000000020001610000000300000000000000010000000200016200000002000000000000000100"
        "000001000000000000000100027231",
        new_subscription(
            ["b", "a"],
            owned={},
            generation_id=1,
            rack_id="r1",
            user_data=bytes.fromhex(
                "000000020001610000000300000000000000010000000200016200000002000000000000000100000001"
            ),
        ),
    ),
    "Java, cooperative-sticky": (
        "00030000000200016100016200000004ffffffff000000000000000100027231",
        new_subscription(["a", "b"], owned={}, generation_id=1, rack_id="r1", user_data=b"\xff" * 4),
    ),
}
ASSIGNMENTS: dict[str, tuple[str, ConsumerProtocolAssignment]] = {
    "librdkafka, in version 0": (
        "0000000000020001620000000200000000000000010001610000000300000000000000010000000200000000",
        new_assignment({"b": [0, 1], "a": [0, 1, 2]}, user_data=b""),
    ),
    "librdkafka, cooperative-sticky": (
        "000000000002000161000000020000000000000002000162000000010000000100000000",
        new_assignment({"a": [0, 2], "b": [1]}, user_data=b""),
    ),
    "Java, range": (
        "00030000000200016100000003000000000000000100000002000162000000020000000000000001ffffffff",
        new_assignment({"a": [0, 1, 2], "b": [0, 1]}),
    ),
    "Java, sticky": (
        "00030000000200016100000001000000020001620000000100000001ffffffff",
        new_assignment({"a": [2], "b": [1]}),
    ),
}

topics = st.text("abc.-_", min_size=1, max_size=5)
partitions = st.dictionaries(topics, st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True))
user_data = st.none() | st.binary(max_size=9)
subscriptions = st.builds(
    new_subscription,
    st.sets(topics),
    owned=partitions,
    generation_id=st.integers(-1, 2**31 - 1),
    rack_id=st.none() | topics,
    user_data=user_data,
)
assignments = st.builds(new_assignment, partitions, user_data=user_data)


@pytest.mark.parametrize("name", SUBSCRIPTIONS)
def test_subscriptions_of_real_members_are_read_and_written_back(name: str) -> None:
    data, expected = SUBSCRIPTIONS[name]

    assert expected == decode_subscription(bytes.fromhex(data))
    assert data == encode_subscription(expected).hex()


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_assignments_of_real_leaders_are_read_and_written_back(name: str) -> None:
    data, expected = ASSIGNMENTS[name]

    assert expected == decode_assignment(bytes.fromhex(data))
    assert data == encode_assignment(expected, int(data[:4], 16)).hex()


def _kio_round_trip(name: str, version: int, data: bytes) -> bytes:
    schema = load_entity_schema(name, version, EntityType.data)
    value, _size = entity_reader(schema)(data, 0)
    rewritten = io.BytesIO()
    entity_writer(schema)(rewritten, value)
    return rewritten.getvalue()


@given(subscriptions, assignments, st.integers(0, 3))
def test_kio_reads_and_writes_the_same_bytes(
    subscription: ConsumerProtocolSubscription, assignment: ConsumerProtocolAssignment, version: int
) -> None:
    one = encode_subscription(subscription, version)[2:]
    two = encode_assignment(assignment, version)[2:]

    assert one == _kio_round_trip("consumer_protocol_subscription", version, one)
    assert two == _kio_round_trip("consumer_protocol_assignment", version, two)


@given(subscriptions, assignments, st.integers(0, 3))
def test_kafka_python_reads_the_same(
    subscription: ConsumerProtocolSubscription, assignment: ConsumerProtocolAssignment, version: int
) -> None:
    theirs: Any = import_module("kafka.protocol.consumer.metadata")
    one = theirs.ConsumerProtocolSubscription.decode(encode_subscription(subscription, version))
    two = theirs.ConsumerProtocolAssignment.decode(encode_assignment(assignment, version))

    assert (one.topics, one.user_data) == (subscription.topics, subscription.user_data)
    assert {item.topic: item.partitions for item in two.assigned_partitions} == partitions_by_topic(assignment)
    assert two.user_data == assignment.user_data


@given(subscriptions, assignments, st.integers(4, 32767), st.binary(max_size=8))
def test_an_unknown_higher_version_is_read_as_the_highest_known_one(
    subscription: ConsumerProtocolSubscription, assignment: ConsumerProtocolAssignment, version: int, more: bytes
) -> None:
    prefix = version.to_bytes(2, "big")

    assert subscription == decode_subscription(prefix + encode_subscription(subscription)[2:] + more)
    assert assignment == decode_assignment(prefix + encode_assignment(assignment)[2:] + more)


@given(subscriptions)
def test_older_versions_leave_out_what_they_cannot_carry(subscription: ConsumerProtocolSubscription) -> None:
    oldest = decode_subscription(encode_subscription(subscription, 0))

    assert (oldest.topics, oldest.user_data) == (subscription.topics, subscription.user_data)
    assert (oldest.owned_partitions, oldest.generation_id, oldest.rack_id) == ([], -1, None)


@pytest.mark.parametrize("data", ["", "00", "ffff00000000ffffffff", "0000", "000000000001", "00010000ffff"])
def test_bytes_that_are_none_are_refused(data: str) -> None:
    with pytest.raises(MalformedRequestError):
        decode_subscription(bytes.fromhex(data))
    with pytest.raises(MalformedRequestError):
        decode_assignment(bytes.fromhex(data))


def test_a_topic_that_stands_there_twice_is_joined_and_an_empty_one_left_out() -> None:
    twice = ConsumerProtocolAssignment(
        assigned_partitions=[
            *new_assignment({"a": [1], "b": []}).assigned_partitions,
            *new_assignment({"a": [0]}).assigned_partitions,
        ]
    )

    assert partitions_by_topic(twice) == {"a": [1, 0]}
    assert partitions_by_topic(new_subscription(["a"], owned={"b": [], "a": [2, 1]})) == {"a": [1, 2]}
