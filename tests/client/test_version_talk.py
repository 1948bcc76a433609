"""Which versions the client and a broker agree on, also where the first question is refused in whatever form."""

from __future__ import annotations

import random

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from odradek import __version__
from odradek.client import Admin, BlockingConsumer, BlockingProducer, Producer, TopicPartition, UnsupportedVersionError
from odradek.client.versions import common_version, decode_api_versions
from odradek.kernel import wire
from odradek.kernel.wire.messages.api_00_produce import ProduceRequest
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.kernel.wire.special_timestamps import MAX_TIMESTAMP
from odradek.kernel.wire.versions import Versions
from tests.interop.clients import import_or_skip
from tests.waiting import PATIENCE_S

from .fake_broker import FakeBroker, fake_broker

MOCK_REFUSAL = bytes.fromhex("0023 01 0012 0000 0002 00 00000000")
"""What librdkafka 2.16's mock cluster says to versions 3 and 4: an error, and an array that counts itself empty."""

KAFKA_REFUSAL = bytes.fromhex("0023 00000001 0012 0000 0002")
"""What Kafka says, in version 0 (KIP-511): an error, and ApiVersions up to 2."""

LIST_OFFSETS = 2
NEWEST = ApiVersionsRequest.__versions__.highest
OURS = ProduceRequest.__versions__


def asked_of(refusal: bytes, versions_max: int) -> list[int]:
    """Return in which versions a producer asks a broker that refuses the newest, before it writes a record there."""

    async def run() -> FakeBroker:
        with trio.fail_after(PATIENCE_S):
            versions = {0: 12, 18: versions_max}
            async with fake_broker(versions_refusal=refusal, versions_max=versions) as broker:
                settings = {"bootstrap.servers": broker.bootstrap, "max.block.ms": 2_000}
                async with Producer(settings, random_source=random.Random(5)) as producer:
                    await producer.send("t", b"one", partition=0)
                return broker

    broker = trio.run(run)

    assert broker.values() == [b"one"]
    return broker.versions_asked[:2]


def test_a_broker_that_says_which_versions_it_takes_is_asked_in_the_newest() -> None:
    assert asked_of(KAFKA_REFUSAL, 2) == [NEWEST, 2]


@pytest.mark.parametrize("refusal", [MOCK_REFUSAL, bytes.fromhex("0023")], ids=["mock cluster", "the code alone"])
def test_a_broker_that_refuses_in_a_form_of_its_own_is_asked_in_version_0(refusal: bytes) -> None:
    assert asked_of(refusal, 2) == [NEWEST, 0]


def test_a_broker_is_told_the_version_of_the_package() -> None:
    async def run() -> tuple[str, str]:
        with trio.fail_after(PATIENCE_S):
            async with fake_broker() as broker:
                async with Admin({"bootstrap.servers": broker.bootstrap}, random_source=random.Random(5)) as admin:
                    await admin.list_topics()
                return broker.client_software

    assert trio.run(run) == ("odradek", __version__)


@pytest.mark.interop
def test_librdkafka_s_mock_cluster_keeps_what_it_is_sent() -> None:
    confluent_kafka = import_or_skip("confluent_kafka")
    holder = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    brokers = holder.list_topics(timeout=10).brokers.values()
    settings: dict[str, object] = {"bootstrap.servers": ",".join(f"{one.host}:{one.port}" for one in brokers)}
    with BlockingProducer(settings) as producer:
        producer.send("t", b"one", partition=0)
    with BlockingConsumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        record = next(iter(consumer))

    assert record.value == b"one"


def test_a_timestamp_that_a_broker_is_too_old_for_is_not_misunderstood() -> None:
    async def run() -> None:
        with trio.fail_after(PATIENCE_S):
            async with (
                fake_broker(versions_max={LIST_OFFSETS: 6}) as broker,
                Admin({"bootstrap.servers": broker.bootstrap, "default.api.timeout.ms": 5_000}) as admin,
            ):
                with pytest.raises(UnsupportedVersionError, match="up to version 6; what is asked needs 7"):
                    await admin.list_offsets({TopicPartition("t", 0): MAX_TIMESTAMP})

    trio.run(run)


# The pure core.


@pytest.mark.parametrize(
    ("theirs", "version_max", "expected"),
    [
        (Versions(0, 99), None, OURS.highest),
        (Versions(0, OURS.lowest), None, OURS.lowest),
        (Versions(0, 99), OURS.lowest + 1, OURS.lowest + 1),
        (Versions(OURS.highest, 99), OURS.highest, OURS.highest),
    ],
)
def test_the_newest_version_that_both_sides_know_is_taken(
    theirs: Versions, version_max: int | None, expected: int
) -> None:
    assert common_version(ProduceRequest, {0: theirs}, "a:1", version_max) == expected


@pytest.mark.parametrize(("version_max", "expected"), [(None, OURS.highest), (5, 5)])
def test_a_broker_that_was_not_asked_yet_is_taken_to_know_what_we_know(version_max: int | None, expected: int) -> None:
    assert common_version(ProduceRequest, None, "a:1", version_max) == expected


@pytest.mark.parametrize(
    ("theirs", "version_max", "words"),
    [
        ({}, None, "a:1 does not answer Produce"),
        ({0: Versions(0, OURS.lowest - 1)}, None, f"versions .*, this client knows .*{OURS.highest}$"),
        ({0: Versions(OURS.highest + 1, 99)}, None, "a:1 answers Produce in versions"),
        ({0: Versions(9, 99)}, 8, "of which at most 8 serves here$"),
    ],
)
def test_no_common_version_is_told_with_both_sides(
    theirs: dict[int, Versions], version_max: int | None, words: str
) -> None:
    with pytest.raises(UnsupportedVersionError, match=words):
        common_version(ProduceRequest, theirs, "a:1", version_max)


def test_a_refusal_in_version_0_says_what_the_broker_takes() -> None:
    expected = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)])

    assert expected == decode_api_versions(KAFKA_REFUSAL, 0, NEWEST)


@given(rest=st.binary(max_size=40))
def test_whatever_follows_a_refusal_it_is_one(rest: bytes) -> None:
    assert decode_api_versions(b"\x00\x23" + rest, 0, NEWEST).error_code == 35


@given(rest=st.binary(max_size=40))
def test_an_answer_that_refuses_nothing_is_read_as_what_was_asked_for(rest: bytes) -> None:
    data = b"\x00\x00" + rest
    try:
        expected = wire.decode(ApiVersionsResponse, data, NEWEST)
    except wire.DecodeError:
        with pytest.raises(wire.DecodeError):
            decode_api_versions(data, 0, NEWEST)
    else:
        assert expected == decode_api_versions(data, 0, NEWEST)
