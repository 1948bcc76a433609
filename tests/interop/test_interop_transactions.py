"""Transactions of real clients: what is committed is seen once, what is aborted by nobody, whoever is killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.kernel.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)

from ..broker.broker_process import BrokerProcess, broker_process
from ..broker.broker_process import Client as Connection
from ..kafka_tools import damage_that_kafka_sees, kafka_command
from .brokers import SETTINGS, kafka_at, mortal_broker
from .clients import those_that
from .driver import ClientError, Driver
from .records import PRODUCE, create_topic, record
from .transactor import TRANSACTORS, read, reader_at, transactor_at, values_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

READERS = those_that("consume")
KILLED = ("librdkafka", "java")
"""One of each transaction version; their programs take long under kills."""


# ------------------------------------------------------------------------------------------------------ what is visible


@pytest.fixture(scope="session")
def told_topics(
    address: str, driver_of: Callable[[str], Driver], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[str, list[str], int]]:
    """Return a function from a producer to its topic, the values that count, and the number of all records.

    Committed and aborted transactions alternate, some of several batches; plain records stand between them, and the
    last transaction stays open, with a committed one of somebody else behind it.
    """
    made: dict[str, tuple[str, list[str], int]] = {}
    folder = tmp_path_factory.mktemp("transactors")

    def topic_of(name: str) -> tuple[str, list[str], int]:
        if name not in made:
            made[name] = write_transactions(name, address, driver_of("librdkafka"), folder)
        return made[name]

    return topic_of


def write_transactions(name: str, address: str, plain: Driver, folder: Path) -> tuple[str, list[str], int]:
    topic = f"told-by-{name}"
    create_topic(address, topic)
    committed: list[str] = []
    records_count = 0
    with (
        transactor_at(name, address, f"first-{name}", folder) as first,
        transactor_at(name, address, f"second-{name}", folder) as second,
    ):
        for number in range(8):
            is_commit = number % 3 != 1
            values = [f"{number}-{part}" for part in range(4)]
            first.do("begin")
            first.do("send", topic=topic, values=values[:2])
            plain_record = record(number, f"plain-{number}".encode())
            plain.do("produce", topic=topic, records=[plain_record], **PRODUCE)
            first.do("send", topic=topic, values=values[2:])
            first.do("end", commit=is_commit)
            committed += [*values[:2], f"plain-{number}", *values[2:]] if is_commit else [f"plain-{number}"]
            records_count += 5
        for transactor, values in ((first, ["open"]), (second, ["behind"])):
            transactor.do("begin")
            transactor.do("send", topic=topic, values=values)
        second.do("end", commit=True)
        return topic, committed, records_count + 2


@pytest.mark.parametrize("client", READERS)
@pytest.mark.parametrize("producer", TRANSACTORS)
def test_a_reader_sees_what_is_committed_and_nothing_else(
    producer: str,
    client: str,
    told_topics: Callable[[str], tuple[str, list[str], int]],
    driver_of: Callable[[str], Driver],
) -> None:
    topic, committed, records_count = told_topics(producer)
    reader = driver_of(client)
    found = read(reader, topic, len(committed))
    everything = read(reader, topic, records_count, "read_uncommitted")

    assert found == committed
    assert len(everything) == records_count
    assert {"open", "behind"} < set(everything)


@pytest.mark.parametrize("client", those_that("consume", "offsets"))
def test_what_stands_behind_an_open_transaction_waits_for_it(
    client: str, address: str, topic: str, tmp_path: Path, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic)
    with transactor_at("librdkafka", address, topic, tmp_path) as transactor:
        transactor.do("begin")
        transactor.do("send", topic=topic, values=["first"])
        driver_of("librdkafka").do("produce", topic=topic, records=[record(0, b"second")], **PRODUCE)
        reader = driver_of(client)
        reader.begin("consume", topic=topic, position="beginning", count=2, isolation="read_committed")
        transactor.do("end", commit=True)

        assert values_of(reader.finish()) == ["first", "second"]


# ----------------------------------------------------------------------------------------------------- who is killed


@pytest.mark.parametrize("producer", KILLED)
def test_a_transaction_outlives_the_death_of_the_broker(producer: str, tmp_path: Path) -> None:
    with mortal_broker(tmp_path) as broker:
        create_topic(broker.address, "kept")
        with transactor_at(producer, broker.address, "t", tmp_path) as transactor:
            for is_commit in (False, True):
                transactor.do("begin")
                transactor.do("send", topic="kept", values=[f"before-{is_commit}"])
                broker.kill()
                broker.restart()
                transactor.do("send", topic="kept", values=[f"after-{is_commit}"])
                transactor.do("end", commit=is_commit)
        with reader_at("librdkafka", broker.address, tmp_path) as reader:
            found = read(reader, "kept", 2)
            everything = read(reader, "kept", 4, "read_uncommitted")

        assert found == ["before-True", "after-True"]
        assert everything == ["before-False", "after-False", *found]


@pytest.mark.parametrize("producer", TRANSACTORS)
def test_a_producer_that_died_is_fenced_and_its_transaction_aborted(
    producer: str, address: str, topic: str, tmp_path: Path, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic)
    with transactor_at(producer, address, topic, tmp_path) as first:
        first.do("begin")
        first.do("send", topic=topic, values=["lost"])
        (tmp_path / "second").mkdir()
        with transactor_at(producer, address, topic, tmp_path / "second") as second:
            second.do("begin")
            second.do("send", topic=topic, values=["kept"])
            second.do("end", commit=True)
        with pytest.raises(ClientError):
            commit_more(first, topic)

    assert read(driver_of("librdkafka"), topic, 1) == ["kept"]
    assert read(driver_of("librdkafka"), topic, 2, "read_uncommitted") == ["lost", "kept"]


def commit_more(transactor: Driver, topic: str) -> None:
    """Go on with a transaction to its end."""
    transactor.do("send", topic=topic, values=["late"])
    transactor.do("end", commit=True)


# ------------------------------------------------------------------------------------------------ what lies on the disk


def test_transactions_that_kafka_kept_are_ours_after_an_adoption(tmp_path: Path) -> None:
    with kafka_at(tmp_path) as kafka:
        with reader_at("librdkafka", kafka.address, tmp_path) as driver:
            topic, committed, records_count = write_transactions("librdkafka", kafka.address, driver, tmp_path)
            theirs = read(driver, topic, len(committed))
        kafka.kill()
    shutil.copytree(tmp_path / "kafka" / "1" / f"{topic}-0", tmp_path / "backup" / f"{topic}-0")
    adopt = [sys.executable, "-m", "odradek", "topics", "adopt", str(tmp_path / "backup")]
    subprocess.run([*adopt, "--data-dir", str(tmp_path / "data")], check=True, capture_output=True)
    with (
        broker_process(tmp_path / "data", *SETTINGS) as broker,
        reader_at("librdkafka", broker.address, tmp_path) as driver,
    ):
        ours = read(driver, topic, len(committed))
        everything = read(driver, topic, records_count, "read_uncommitted")
        abort_what_hangs(broker.address, topic)
        then = read(driver, topic, len(committed) + 1)

    assert ours == theirs == committed
    assert len(everything) == records_count
    assert then == [*committed, "behind"]


def abort_what_hangs(address: str, topic: str) -> None:
    """Abort the transactions that are open in partition 0, as `kafka-transactions.sh` does."""
    with Connection(address) as connection:
        asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
        described = connection.ask(asked, 0)
        assert isinstance(described, DescribeProducersResponse)
        hanging = [
            each for each in described.topics[0].partitions[0].active_producers if each.current_txn_start_offset >= 0
        ]
        assert hanging
        markers = [
            WritableTxnMarker(
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                coordinator_epoch=max(each.coordinator_epoch, 0),
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
            )
            for each in hanging
        ]
        answer = connection.ask(WriteTxnMarkersRequest(markers=markers), 1)
        assert isinstance(answer, WriteTxnMarkersResponse)
        assert [each.topics[0].partitions[0].error_code for each in answer.markers] == [0] * len(markers)


def test_kafka_reads_what_transactional_clients_had_us_write(tmp_path: Path) -> None:
    kafka_command()
    broker = BrokerProcess(tmp_path / "data", *SETTINGS)
    address = broker.wait_ready()
    with reader_at("librdkafka", address, tmp_path) as driver:
        topic, _, _ = write_transactions("librdkafka", address, driver, tmp_path)
    broker.kill()
    broker.close()
    killed = damage_that_kafka_sees(in_use=[tmp_path / "data"], may_have_gaps=False)
    with broker_process(tmp_path / "data", *SETTINGS):
        pass
    stopped = damage_that_kafka_sees(tmp_path / "data", may_have_gaps=False)

    assert killed == stopped == []
    assert (tmp_path / "data" / f"{topic}-0" / f"{0:020}.txnindex").stat().st_size == 3 * 34
