"""Shell: what an operator reads when a broker cannot start: one line that says what, where and what to do."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from odradek.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SERVED_S = 90.0
"""A broker that starts all the same is interrupted after this long; its test then fails."""


@attrs.frozen
class Bad:
    """A start that must be refused.

    Attributes:
        options: `--set` options.
        says: Texts that the line must hold: what is wrong, where, what to do.
        config: The configuration file's text, for a broker that has one.
        name: The configuration file's name.
        environment: Variables.
        prepare: Makes files in the test's folder first.
        arguments: More of the command line; `{here}` is the test's folder.
        status: The exit status.
    """

    says: tuple[str, ...]
    options: tuple[str, ...] = ()
    config: str | bytes | None = None
    name: str = "odradek.toml"
    environment: tuple[tuple[str, str], ...] = ()
    prepare: Callable[[Path], object] = lambda _: None
    arguments: tuple[str, ...] = ()
    status: int = 2


def meta_properties(text: str) -> Callable[[Path], object]:
    def write(here: Path) -> None:
        (here / "data").mkdir()
        (here / "data" / "meta.properties").write_text(text)

    return write


def tls_files(here: Path) -> None:
    leaf = trustme.CA(key_type=trustme.KeyType.ECDSA).issue_cert("localhost")
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
    other = trustme.CA(key_type=trustme.KeyType.ECDSA).issue_cert("localhost")
    (here / "server.pem").write_bytes(encrypted + chain)
    (here / "open.pem").write_bytes(leaf.private_key_pem.bytes() + chain)
    (here / "mixed.pem").write_bytes(other.private_key_pem.bytes() + chain)
    (here / "certificate.pem").write_bytes(chain)
    (here / "nonsense.pem").write_text("no certificate at all\n")


def tls(store: str, *more: str) -> tuple[str, ...]:
    return (
        "listeners=SSL://127.0.0.1:0",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={{here}}/{store}",
        *more,
    )


BAD = {
    # ---- values
    "a word for a number": Bad(("--set num.partitions", "num.partitions", "number"), ("num.partitions=four",)),
    "a number out of range": Bad(("--set log.segment.bytes", "at least"), ("log.segment.bytes=1",)),
    "a boolean that is none": Bad(
        ("--set auto.create.topics.enable", "true or false"), ("auto.create.topics.enable=maybe",)
    ),
    "a choice that there is not": Bad(("--set compression.type", "gzip"), ("compression.type=rar",)),
    "a misspelled key": Bad(("--set num.partition", "num.partitions"), ("num.partition=4",)),
    "a client's key": Bad(("--set linger.ms", "client"), ("linger.ms=5",)),
    "a retired key": Bad(("--set zookeeper.connect", "ZooKeeper"), ("zookeeper.connect=localhost:2181",)),
    "no key and value": Bad(("--set num.partitions", "key=value"), ("num.partitions",)),
    "two node ids": Bad(("--set broker.id", "node.id"), ("broker.id=1", "node.id=2")),
    "an unknown variable": Bad(
        ("ODRADEK_NUM_PARTITION", "num.partitions"), environment=(("ODRADEK_NUM_PARTITION", "4"),)
    ),
    "a wrong variable": Bad(("ODRADEK_NUM_PARTITIONS", "number"), environment=(("ODRADEK_NUM_PARTITIONS", "four"),)),
    # ---- listeners
    "two listeners on one port": Bad(
        ("listeners", "port"),
        ("listeners=A://127.0.0.1:19092,B://127.0.0.1:19092", "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"),
    ),
    "a listener without a protocol": Bad(("listener.security.protocol.map", "INTERNAL"), ("listeners=INTERNAL://:0",)),
    "an advertised listener that there is not": Bad(
        ("advertised.listeners", "OTHER"),
        ("listeners=PLAINTEXT://127.0.0.1:0", "advertised.listeners=OTHER://127.0.0.1:0"),
    ),
    "every address advertised": Bad(
        ("advertised.listeners", "0.0.0.0"), ("advertised.listeners=PLAINTEXT://0.0.0.0:0",)
    ),
    "a listener with SASL": Bad(("SASL",), ("listeners=SASL_PLAINTEXT://127.0.0.1:0",)),
    "an address that is none": Bad(("--listen here", "HOST:PORT"), arguments=("--listen", "here")),
    "a host of no machine": Bad(("no-such-host.invalid",), ("listeners=PLAINTEXT://no-such-host.invalid:0",)),
    "a port in use": Bad(("{port}", "in use"), arguments=("--listen", "127.0.0.1:{port}")),
    "an HTTP port in use": Bad(
        ("odradek.http.listener", "{port}", "in use"), ("odradek.http.listener=127.0.0.1:{port}",)
    ),
    "an HTTP address that is none": Bad(("odradek.http.listener",), ("odradek.http.listener=metrics",)),
    # ---- TLS
    "TLS without a key store": Bad(("ssl.keystore",), ("listeners=SSL://127.0.0.1:0",)),
    "a key store that is not there": Bad(("ssl.keystore.location", "nowhere.pem", "No such file"), tls("nowhere.pem")),
    "a key store that is none": Bad(
        ("ssl.keystore.location", "nonsense.pem", "no private key"), tls("nonsense.pem"), prepare=tls_files
    ),
    "a key store without a key": Bad(
        ("ssl.keystore.location", "certificate.pem", "no private key"), tls("certificate.pem"), prepare=tls_files
    ),
    "an encrypted key without a password": Bad(
        ("server.pem", "ssl.key.password"), tls("server.pem"), prepare=tls_files
    ),
    "an encrypted key and another password": Bad(
        ("server.pem", "ssl.key.password"), tls("server.pem", "ssl.key.password=wrong"), prepare=tls_files
    ),
    "authorities that are none": Bad(
        ("ssl.truststore.location", "nonsense.pem", "no certificate"),
        tls("open.pem", "ssl.truststore.type=PEM", "ssl.truststore.location={here}/nonsense.pem"),
        prepare=tls_files,
    ),
    "a key and another's certificate": Bad(
        ("ssl.keystore.location", "mixed.pem", "key values mismatch"), tls("mixed.pem"), prepare=tls_files
    ),
    # ---- files
    "a file that is not there": Bad(("nowhere.toml", "No such file"), arguments=("--config", "{here}/nowhere.toml")),
    "a folder for a file": Bad(("cannot read the configuration", "directory"), arguments=("--config", "{here}")),
    "a file that is not UTF-8": Bad(("odradek.toml", "UTF-8"), config=b'[broker]\n"node.id" = "\xff"\n'),
    "no TOML": Bad(("odradek.toml", "line 2"), config="[broker]\nnum.partitions = \n"),
    "a key twice": Bad(("odradek.toml",), config='[broker]\n"num.partitions" = 1\n"num.partitions" = 2\n'),
    "an unknown section": Bad(("odradek.toml, line 1", "brokers", "[broker]"), config="[brokers]\n"),
    "a key outside of a section": Bad(("odradek.toml, line 1", "[broker]"), config='"num.partitions" = 4\n'),
    "a misspelled key in a file": Bad(
        ("odradek.toml, line 3", "num.partitions"), config='[broker]\n\n"num.partition" = 4\n'
    ),
    "a list for a number": Bad(
        ("odradek.toml, line 2", "num.partitions"), config='[broker]\n"num.partitions" = [4, 5]\n'
    ),
    "a table for plugins": Bad(("odradek.toml, line 2", 'enable = ["name"]'), config="[plugins]\nenable = 5\n"),
    "a wrong escape in properties": Bad(
        ("server.properties, line 2", "hexadecimal", "written twice"),
        config="node.id=1\nlog.dirs=C:\\users\n",
        name="server.properties",
    ),
    "a wrong value in properties": Bad(
        ("server.properties, line 1", "number"), config="num.partitions=four\n", name="server.properties"
    ),
    "a topic with a wrong setting": Bad(
        ("odradek.toml, line 2", "retention.ms"), config='[topics.orders]\n"retention.ms" = "long"\n'
    ),
    "a topic of no partitions": Bad(
        ("odradek.toml, line 2", "partitions", "at least 1"), config="[topics.orders]\npartitions = 0\n"
    ),
    "a topic with a name that is none": Bad(("odradek.toml, line 1", "a b"), config='[topics."a b"]\n'),
    "a topic of more replicas than brokers": Bad(
        ("odradek.toml", "replication factor"), config='[topics.orders]\n"replication.factor" = 3\n'
    ),
    # ---- plugins
    "a plugin that is not installed": Bad(
        ("storage_tape", "storage_segment"), config='[plugins]\nenable = ["storage_tape"]\n', status=1
    ),
    "a storage that nobody offers": Bad(("--set odradek.storage", "segment"), ("odradek.storage=tape",)),
    "an election that nobody offers": Bad(("--set odradek.election", "isr"), ("odradek.election=lots",)),
    "an election among the replicas of a broker alone": Bad(
        ("--set odradek.election", "this broker is alone", "isr"), ("odradek.election=quorum",)
    ),
    "internal topics whose replicas would vote on a broker that is alone": Bad(
        ("--set odradek.internal.election", "this broker is alone", "isr"), ("odradek.internal.election=quorum",)
    ),
    "a metadata election that nobody offers": Bad(
        ("odradek.metadata.election", "isr"), status=1, options=("odradek.metadata.election=lots",)
    ),
    "an assignor that nobody offers": Bad(
        ("--set group.consumer.assignors", "fair", "uniform", "range"), ("group.consumer.assignors=uniform,fair",)
    ),
    "an assignor that is not the server's": Bad(
        ("--set group.consumer.assignors", "roundrobin", "uniform", "range"), ("group.consumer.assignors=roundrobin",)
    ),
    "the chosen assignors disabled": Bad(
        ("odradek.toml", "group.consumer.assignors", "uniform"),
        config='[broker]\n"group.consumer.assignors" = ["uniform"]\n[plugins]\ndisable = ["assignors"]\n',
    ),
    "the chosen storage disabled": Bad(
        ("odradek.storage", "segment"), config='[plugins]\ndisable = ["storage_segment"]\n', status=1
    ),
    # ---- the same twice
    "listeners twice": Bad(
        ("--set listeners", "--listen 127.0.0.1:0 says it already"),
        ("listeners=PLAINTEXT://127.0.0.1:0",),
        arguments=("--listen", "127.0.0.1:0"),
    ),
    "an advertised address that would be ignored": Bad(
        ("--set advertised.listeners", "--listen 127.0.0.1:0 says it already"),
        ("advertised.listeners=PLAINTEXT://broker.example:9092",),
        arguments=("--listen", "127.0.0.1:0"),
    ),
    "a data directory twice": Bad(
        ("--set log.dir:", "--data-dir {here}/data says it already"),
        ("log.dir={here}/other",),
        arguments=("--data-dir", "{here}/data"),
    ),
    # ---- data
    "a data directory that would be two": Bad(("--data-dir", "a,b", "comma"), arguments=("--data-dir", "{here}/a,b")),
    "a file for a data directory": Bad(("{here}/data",), prepare=lambda here: (here / "data").write_text(""), status=1),
    "a directory that cannot be made": Bad(
        ("{here}/file/data",),
        prepare=lambda here: (here / "file").write_text(""),
        arguments=("--data-dir", "{here}/file/data"),
        status=1,
    ),
    "data of another node": Bad(
        ("{here}/data", "node 7", "set node.id"),
        prepare=meta_properties("version=1\ncluster.id=aaaaaaaaaaaaaaaaaaaaaA\nnode.id=7\n"),
        status=1,
    ),
    "data of another cluster": Bad(
        ("{here}/data", "cluster aaaaaaaaaaaaaaaaaaaaaA", "set odradek.cluster.id"),
        ("odradek.cluster.id=bbbbbbbbbbbbbbbbbbbbbA",),
        prepare=meta_properties("version=1\ncluster.id=aaaaaaaaaaaaaaaaaaaaaA\nnode.id=1\n"),
        status=1,
    ),
    "data of a newer version": Bad(
        ("{here}/data/meta.properties", "version '99'", "log.dirs"),
        prepare=meta_properties("version=99\ncluster.id=aaaaaaaaaaaaaaaaaaaaaA\nnode.id=1\n"),
        status=1,
    ),
    "data of nobody": Bad(("{here}/data/meta.properties", "log.dirs"), prepare=meta_properties("nonsense"), status=1),
}


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(autouse=True)
def _interrupts_a_broker_that_serves() -> Iterator[None]:
    """A start that is not refused would serve for ever."""
    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, SERVED_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_start_is_refused_in_one_line(
    bad: Bad, tmp_path: Path, taken_port: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def filled(text: str) -> str:
        return text.replace("{here}", str(tmp_path)).replace("{port}", str(taken_port))

    for variable in [name for name in os.environ if name.startswith("ODRADEK_")]:
        monkeypatch.delenv(variable)
    for variable, value in bad.environment:
        monkeypatch.setenv(variable, value)
    bad.prepare(tmp_path)
    command = ["serve"]
    if "--data-dir" not in bad.arguments:
        command += ["--set", f"log.dirs={tmp_path / 'data'}"]
    if bad.config is not None:
        file = tmp_path / bad.name
        file.write_bytes(bad.config if isinstance(bad.config, bytes) else bad.config.encode())
        command += ["--config", str(file)]
    if not any(option.startswith("listeners=") for option in bad.options) and "--listen" not in bad.arguments:
        command += ["--set", "listeners=PLAINTEXT://127.0.0.1:0"]
    command += [word for option in bad.options for word in ("--set", filled(option))]
    status = main([*command, *map(filled, bad.arguments)])
    out, err = capfd.readouterr()

    assert (bad.status, "", 1) == (status, out, len(err.splitlines())), err
    assert err.startswith("odradek: ")
    for text in bad.says:
        assert filled(text) in err, err
