"""The light client against a broker of ours: real sockets, records, transactions, groups, TLS."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from odradek.client.blocking_producer import BlockingProducer
from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.records.reader import read_batch
from odradek.kernel.types import TopicPartition
from odradek.spark_plugin.client import Client, ClientSettings, client_for
from odradek.spark_plugin.client.cache import close_clients
from odradek.spark_plugin.client.errors import (
    AuthenticationFailedError,
    ClientTimeoutError,
    NoProgressError,
    OffsetOutOfRangeError,
)
from odradek.spark_plugin.ranges import OffsetRange
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.tls_broker import Secured, secured_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker({"num.partitions": 2, "transaction.state.log.replication.factor": 1}) as broker:
        yield broker


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[Client]:
    with closing(Client(settings(broker.bootstrap))) as client:
        yield client


def settings(bootstrap: str, **options: object) -> ClientSettings:
    return ClientSettings.of(
        {"bootstrap.servers": bootstrap} | {name.replace("_", "."): value for name, value in options.items()}
    )


def send(bootstrap: str, topic: str, values: list[bytes], **options: object) -> None:
    """Write records to partition 0."""
    given = {"bootstrap.servers": bootstrap} | {name.replace("_", "."): value for name, value in options.items()}
    with BlockingProducer(given) as producer:
        for value in values:
            producer.enqueue(topic, value=value, partition=0)
        producer.flush()


def values(client: Client, wanted: OffsetRange, *, is_read_committed: bool = False) -> dict[int, bytes]:
    """Return the values of a range by their offsets; control records and aborted ones are left in."""
    found = {}
    for fetched in client.fetch(wanted, is_read_committed=is_read_committed, poll_timeout_ms=20_000):
        for place, header in iterate_batches(fetched.data):
            for offset, _, _, value, _ in read_batch(fetched.data, place, header):
                if wanted.start <= offset < wanted.end and value is not None and not header.is_control:
                    found[offset] = bytes(value)
    return found


def write_one_of_each(bootstrap: str, client: Client) -> int:
    """Write a record in a transaction that is committed and one in a transaction that is not; return where they end."""
    with BlockingProducer({"bootstrap.servers": bootstrap, "transactional.id": "x"}) as producer:
        for is_commit in (True, False):
            producer.begin_transaction()
            producer.send("txn", value=b"v", partition=0)
            if is_commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    partition = TopicPartition("txn", 0)
    return client.list_offsets({partition: -1}, is_read_committed=True)[partition].offset


def aborted_in(client: Client, end: int) -> list[int]:
    """Return where the aborted transactions of that topic begin, as fetches tell them."""
    fetched = client.fetch(OffsetRange("txn", 0, 0, end), is_read_committed=True)
    return [first for one in fetched for first, _ in one.aborted]


@pytest.mark.parametrize("codec", ["none", "lz4", "gzip"])
def test_what_was_written_is_read(broker: RunningBroker, client: Client, codec: str) -> None:
    sent = [b"%d" % number * 50 for number in range(500)]
    send(broker.bootstrap, f"read-{codec}", sent, compression_type=codec, batch_size=2_000)

    assert values(client, OffsetRange(f"read-{codec}", 0, 0, 500)) == dict(enumerate(sent))
    assert values(client, OffsetRange(f"read-{codec}", 0, 123, 321)) == dict(enumerate(sent[123:321], 123))


def test_small_fetches_and_large_batches_go_together(broker: RunningBroker) -> None:
    sent = [os.urandom(20_000) for _ in range(40)]
    send(broker.bootstrap, "large", sent, batch_size=200_000)
    small = settings(broker.bootstrap, max_partition_fetch_bytes=1_000)

    with Client(small) as client:
        assert values(client, OffsetRange("large", 0, 0, 40)) == dict(enumerate(sent))


def test_topics_and_offsets_are_as_they_are(broker: RunningBroker, client: Client) -> None:
    send(broker.bootstrap, "listed", [b"x"] * 7)
    partition = TopicPartition("listed", 0)

    assert client.describe(["listed", "none"])["listed"].partitions == (0, 1)
    assert "listed" in client.topics()
    assert client.list_offsets({partition: -1}, is_read_committed=True)[partition].offset == 7
    both = client.list_offsets({partition: -2, TopicPartition("listed", 1): -1}, is_read_committed=False)
    assert [found.offset for found in both.values()] == [0, 0]
    assert client.list_offsets({partition: 2**62}, is_read_committed=False)[partition].offset == -1


def test_a_topic_is_made_by_asking(client: Client) -> None:
    assert client.describe(["made"]) == {}
    assert client.describe(["made"], may_create=True)["made"].partitions == (0, 1)


def test_offsets_of_a_group_are_kept(client: Client) -> None:
    client.describe(["grouped"], may_create=True)
    first, second = TopicPartition("grouped", 0), TopicPartition("grouped", 1)

    assert client.committed_offsets("g", [first]) == {}
    client.commit_offsets("g", {first: 12})
    assert client.committed_offsets("g", [first, second], require_stable=True) == {first: 12}


def test_the_tail_of_a_transactional_topic_ends_the_range(broker: RunningBroker, client: Client) -> None:
    end = write_one_of_each(broker.bootstrap, client)

    assert end == 4
    assert aborted_in(client, end) == [2]
    assert values(client, OffsetRange("txn", 0, 1, end), is_read_committed=True) == {2: b"v"}


def test_offsets_that_never_were_are_told(broker: RunningBroker, client: Client) -> None:
    send(broker.bootstrap, "short", [b"x"] * 3)

    with pytest.raises(OffsetOutOfRangeError, match=r"\[0, 3\)"):
        values(client, OffsetRange("short", 0, 9, 10))
    with pytest.raises(NoProgressError, match="high watermark 3"):
        list(client.fetch(OffsetRange("short", 0, 3, 4), is_read_committed=False, poll_timeout_ms=600))


def test_a_process_keeps_its_client(broker: RunningBroker) -> None:
    client = client_for(settings(broker.bootstrap))
    client.topics()

    assert client_for(settings(broker.bootstrap)) is client
    close_clients()


def test_a_forked_child_reads_while_its_parent_reads(broker: RunningBroker) -> None:
    send(broker.bootstrap, "forked", [b"x"] * 10)
    program = f"""
import os
from odradek.spark_plugin.client import ClientSettings, client_for
from odradek.spark_plugin.ranges import OffsetRange
settings = ClientSettings.of({{"bootstrap.servers": "{broker.bootstrap}"}})
def read():
    loop = client_for(settings).fetch(OffsetRange("forked", 0, 0, 10), is_read_committed=False)
    return sum(len(one.data) for one in loop)
expected = read()
child = os.fork()
if not child:
    os._exit(0 if read() == expected else 1)
assert all(read() == expected for _ in range(20))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_worker_loads_neither_an_event_loop_nor_a_broker() -> None:
    program = """
import sys
from odradek.spark_plugin.client import Client, ClientSettings, client_for
import odradek.spark_plugin.client.sasl, odradek.spark_plugin.client.setting_keys
heavy = [name for name in sys.modules if name.split(".")[0] in {"trio", "pluggy"} or "kernel.broker" in name]
assert not heavy, heavy
"""

    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


# A port where somebody listens, and nobody speaks.


@contextmanager
def silent_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_port_that_is_silent_is_given_up() -> None:
    with silent_port() as bootstrap:
        quick = settings(bootstrap, request_timeout_ms=100, default_api_timeout_ms=300)
        with Client(quick) as client, pytest.raises(ClientTimeoutError, match="did not answer ApiVersions"):
            client.topics()


def test_a_port_that_is_closed_is_named() -> None:
    with silent_port() as bootstrap:
        pass
    with (
        Client(settings(bootstrap, default_api_timeout_ms=300)) as client,
        pytest.raises(ClientTimeoutError, match=f"{bootstrap}.*refused"),
    ):
        client.topics()


def test_a_name_that_does_not_exist_is_named() -> None:
    with (
        Client(settings("no-such-host.invalid:9092", default_api_timeout_ms=300)) as client,
        pytest.raises(ClientTimeoutError, match=r"no-such-host\.invalid:9092"),
    ):
        client.topics()


def test_a_large_request_is_written_in_pieces_and_whole() -> None:
    received = bytearray()

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            while data := connection.recv(70_000):
                received.extend(data)

    from odradek.spark_plugin.client.transport import SocketConnector

    parts = [os.urandom(size) for size in (5, 300_000, 17, 900_000)] + [bytes([number % 256]) for number in range(700)]
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        transport = SocketConnector(None, 16_384, -1)("127.0.0.1", server.getsockname()[1], timeout_ms=5_000)
        transport.send(parts, 5_000)
        transport.close()
        thread.join(5)

    assert bytes(received) == b"".join(parts)


# TLS.


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("light-tls")) as broker:
        yield broker


def tls(secured: Secured, **more: object) -> dict[str, object]:
    return {
        "security_protocol": "SSL",
        "ssl_truststore_location": secured.authority,
        "ssl_keystore_location": secured.client,
        **more,
    }


def test_a_range_is_read_over_tls_with_a_client_certificate(secured: Secured) -> None:
    sent = [os.urandom(1_000) for _ in range(300)]
    send(secured.bootstrap, "secret", sent, **tls(secured))

    with Client(settings(secured.bootstrap, **tls(secured))) as client:
        assert values(client, OffsetRange("secret", 0, 0, 300)) == dict(enumerate(sent))


@pytest.mark.parametrize("missing", ["ssl_truststore_location", "ssl_keystore_location"])
def test_without_trust_or_certificate_the_client_says_so_at_once(secured: Secured, missing: str) -> None:
    given = tls(secured)
    del given[missing]

    with (
        Client(settings(secured.bootstrap, default_api_timeout_ms=2_000, **given)) as client,
        pytest.raises((AuthenticationFailedError, ClientTimeoutError), match=secured.bootstrap),
    ):
        client.topics()


def test_plain_text_to_a_tls_port_ends_soon(secured: Secured) -> None:
    with (
        Client(settings(secured.bootstrap, default_api_timeout_ms=500)) as client,
        pytest.raises(ClientTimeoutError, match=secured.bootstrap),
    ):
        client.topics()
