"""Which versions the client and a broker agree on, also where the first question is refused in whatever form."""

from __future__ import annotations

import random

import pytest
import trio

from odradek import __version__
from odradek.client import Admin, BlockingConsumer, BlockingProducer, Producer, TopicPartition, UnsupportedVersionError
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.special_timestamps import MAX_TIMESTAMP
from tests.interop.clients import import_or_skip
from tests.machines import machine_with
from tests.waiting import PATIENCE_S

from .fake_broker import FakeBroker, fake_broker

MOCK_REFUSAL = bytes.fromhex("0023 01 0012 0000 0002 00 00000000")
"""What librdkafka 2.16's mock cluster says to versions 3 and 4: an error, and an array that counts itself empty."""

KAFKA_REFUSAL = bytes.fromhex("0023 00000001 0012 0000 0002")
"""What Kafka says, in version 0 (KIP-511): an error, and ApiVersions up to 2."""

LIST_OFFSETS = 2
NEWEST = ApiVersionsRequest.__versions__.highest


def asked_of(refusal: bytes, versions_max: int) -> list[int]:
    """Return in which versions a producer asks a broker that refuses the newest, before it writes a record there."""

    async def run() -> FakeBroker:
        with trio.fail_after(PATIENCE_S):
            versions = {0: 12, 18: versions_max}
            async with fake_broker(versions_refusal=refusal, versions_max=versions) as broker:
                settings = {"bootstrap.servers": broker.bootstrap, "max.block.ms": 2_000}
                async with Producer(settings, machine=machine_with(random=random.Random(5))) as producer:
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
                async with Admin(
                    {"bootstrap.servers": broker.bootstrap}, machine=machine_with(random=random.Random(5))
                ) as admin:
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
