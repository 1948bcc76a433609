"""The light client against Apache Kafka: records, transactions, groups, and every way to log in."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.spark_plugin.client import Client, ClientSettings
from odradek.spark_plugin.client.errors import AuthenticationFailedError, OffsetOutOfRangeError
from odradek.spark_plugin.ranges import OffsetRange
from tests.interop.brokers import KafkaProcess
from tests.interop.clients import MissingClientError, skip_or_fail
from tests.spark_plugin.client.test_against_our_broker import aborted_in, send, settings, values, write_one_of_each
from tools.ports import free_ports

pytestmark = pytest.mark.interop

MODULES = "org.apache.kafka.common.security"
PLAIN = f'{MODULES}.plain.PlainLoginModule required username="alice" password="secret"'
SCRAM = f'{MODULES}.scram.ScramLoginModule required username="bob" password="se,cr=et"'
BEARER = f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="carol"'
SCRAM_HASHES = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}


@attrs.frozen
class Kafka:
    """A running Kafka, its listeners, and the certificate of who signed its own."""

    plain: str
    sasl: str
    tls: str
    authority: str


def kafka_options(ports: list[int], keystore: Path) -> list[str]:
    names = ("PLAINTEXT", "CONTROLLER", "SASL", "TLS")
    addresses = [f"{name}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)]
    return [
        f"listeners={','.join(addresses)}",
        f"advertised.listeners={','.join(one for one in addresses if not one.startswith('CONTROLLER'))}",
        f"controller.quorum.voters=1@127.0.0.1:{ports[1]}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f'listener.name.sasl.plain.sasl.jaas.config={PLAIN} user_alice="secret";',
        f'listener.name.tls.plain.sasl.jaas.config={PLAIN} user_alice="secret";',
        f"listener.name.sasl.oauthbearer.sasl.jaas.config={BEARER};",
        *(
            f"listener.name.{listener}.{mechanism}.sasl.jaas.config={SCRAM};"
            for listener in ("sasl", "tls")
            for mechanism in ("scram-sha-256", "scram-sha-512")
        ),
        f"listener.name.tls.oauthbearer.sasl.jaas.config={BEARER};",
        "listener.name.tls.ssl.keystore.type=PEM",
        f"listener.name.tls.ssl.keystore.location={keystore}",
        "num.partitions=2",
    ]


def write_keystore(authority: trustme.CA, path: Path) -> None:
    """Write a certificate and its key as Kafka reads them: PKCS 8."""
    issued = authority.issue_cert("127.0.0.1")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(text + b"".join(blob.bytes() for blob in issued.cert_chain_pems))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    folder = tmp_path_factory.mktemp("light-kafka")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    write_keystore(authority, folder / "server.pem")
    ports = free_ports(4)
    try:
        process = KafkaProcess(folder, *kafka_options(ports, folder / "server.pem"), listen=f"127.0.0.1:{ports[0]}")
    except MissingClientError as error:
        skip_or_fail(f"Apache Kafka is not on this machine; needs {error}")
        raise
    try:
        process.wait_ready()
        plain, _, sasl, tls = (f"127.0.0.1:{port}" for port in ports)
        add_scram_user(plain)
        yield Kafka(plain, sasl, tls, str(folder / "authority.pem"))
    finally:
        process.end()


def add_scram_user(bootstrap: str) -> None:
    upsertions = [
        ScramCredentialUpsertion(
            name="bob",
            mechanism=number,
            iterations=4_096,
            salt=b"salty",
            salted_password=hashlib.pbkdf2_hmac(hash_name, b"se,cr=et", b"salty", 4_096),
        )
        for number, hash_name in SCRAM_HASHES.values()
    ]
    with Client(settings(bootstrap)) as client:
        for upsertion in upsertions:  # Kafka takes a user once in a request
            answer = client.call_any(AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]))
            assert [one.error_code for one in answer.results] == [0]


@pytest.fixture
def client(kafka: Kafka) -> Iterator[Client]:
    with Client(settings(kafka.plain)) as client:
        yield client


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_kafka_gives_what_was_written(kafka: Kafka, client: Client, codec: str) -> None:
    sent = [b"%d" % number * 200 for number in range(2_000)]
    send(kafka.plain, f"read-{codec}", sent, compression_type=codec, batch_size=20_000)
    small = settings(kafka.plain, max_partition_fetch_bytes=10_000)

    assert values(client, OffsetRange(f"read-{codec}", 0, 100, 1_900)) == dict(enumerate(sent[100:1_900], 100))
    with Client(small) as slow:
        assert values(slow, OffsetRange(f"read-{codec}", 0, 0, 2_000)) == dict(enumerate(sent))


def test_kafka_makes_topics_that_are_asked_for(client: Client) -> None:
    assert client.describe(["made"]) == {}
    assert client.describe(["made"], may_create=True)["made"].partitions == (0, 1)
    assert "made" in client.topics()


def test_kafka_keeps_a_groups_offsets(client: Client) -> None:
    client.describe(["grouped"], may_create=True)
    first, second = TopicPartition("grouped", 0), TopicPartition("grouped", 1)

    client.commit_offsets("g", {first: 12})

    assert client.committed_offsets("g", [first, second], require_stable=True) == {first: 12}


def test_kafka_tells_aborted_transactions_and_the_tail_ends_the_range(kafka: Kafka, client: Client) -> None:
    end = write_one_of_each(kafka.plain, client)

    assert end == 4
    assert aborted_in(client, end) == [2]
    assert client.finalized_level("transaction.version") == 2


def test_kafka_tells_offsets_by_time_and_those_that_are_not_there(kafka: Kafka, client: Client) -> None:
    send(kafka.plain, "short", [b"x"] * 3)
    partition = TopicPartition("short", 0)

    assert client.list_offsets({partition: 1}, is_read_committed=False)[partition].offset == 0
    assert client.list_offsets({partition: 2**62}, is_read_committed=False)[partition].offset == -1
    assert client.list_offsets({partition: -4}, is_read_committed=False)[partition].offset == 0
    with pytest.raises(OffsetOutOfRangeError, match=r"\[0, 3\)"):
        values(client, OffsetRange("short", 0, 9, 10))


def login(mechanism: str, line: str, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    return {"security_protocol": protocol, "sasl_mechanism": mechanism, "sasl_jaas_config": line + ";"}


@pytest.mark.parametrize(
    ("mechanism", "line"),
    [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM), ("OAUTHBEARER", BEARER)],
    ids=["plain", "scram-256", "scram-512", "bearer"],
)
def test_kafka_lets_us_in(kafka: Kafka, mechanism: str, line: str) -> None:
    with Client(settings(kafka.sasl, **login(mechanism, line))) as client:
        assert client.describe(["of-sasl"], may_create=True)


@pytest.mark.parametrize(
    ("mechanism", "line"),
    [
        ("PLAIN", PLAIN.replace("secret", "wrong")),
        ("SCRAM-SHA-256", SCRAM.replace("se,cr=et", "wrong")),
        ("SCRAM-SHA-512", SCRAM.replace("bob", "nobody")),
    ],
    ids=["plain", "scram-256", "scram-512"],
)
def test_kafka_keeps_us_out_and_we_do_not_knock_again(kafka: Kafka, mechanism: str, line: str) -> None:
    with (
        Client(settings(kafka.sasl, **login(mechanism, line))) as client,
        pytest.raises(AuthenticationFailedError, match=kafka.sasl),
    ):
        client.topics()


def test_kafka_keeps_a_token_out_that_is_too_old(kafka: Kafka) -> None:
    line = BEARER + ' unsecuredLoginLifetimeSeconds="-600"'

    with (
        Client(settings(kafka.sasl, **login("OAUTHBEARER", line))) as client,
        pytest.raises(AuthenticationFailedError, match="OAUTHBEARER"),
    ):
        client.topics()


def test_records_come_over_tls_with_a_log_in(kafka: Kafka) -> None:
    sent = [os.urandom(1_000) for _ in range(500)]
    send(kafka.plain, "over-tls", sent)
    options = login("SCRAM-SHA-512", SCRAM, "SASL_SSL") | {"ssl_truststore_location": kafka.authority}

    with Client(settings(kafka.tls, **options)) as client:
        assert values(client, OffsetRange("over-tls", 0, 0, 500)) == dict(enumerate(sent))


def test_a_certificate_that_nobody_vouches_for_is_refused(kafka: Kafka) -> None:
    given = ClientSettings.of(
        {name.replace("_", "."): value for name, value in login("PLAIN", PLAIN, "SASL_SSL").items()}
        | {"bootstrap.servers": kafka.tls}
    )

    with Client(given) as client, pytest.raises(AuthenticationFailedError, match=r"ssl\.truststore"):
        client.topics()
