"""The table of clients: how each is started, what it needs on a machine, and what it cannot do.

A new client is a driver program and a row here; every test then runs with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import pytest

from tools.peers_folder import peers_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HERE: Final = Path(__file__).parent
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


class MissingClientError(Exception):
    """A client is not on this machine; the text says what to install."""


def skip_or_fail(reason: str) -> None:
    """Skip where a person runs the tests; fail where nobody would see it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def import_or_skip(module: str, remedy: str = "pip install --group interop") -> Any:
    """Return a module that some environment of the gate has; without it skip, or fail, as `skip_or_fail` does.

    Where an environment lacks it by design, its tests are deselected there: `tox.toml` says which run where.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        skip_or_fail(f"{module} is not installed: {error}; {remedy}")
        raise


@attrs.frozen
class Client:
    """One client.

    Attributes:
        name: As the tests show it.
        command: Makes its driver ready and returns how to run it; the broker's address is appended.
        cannot: Capability to the reason why the client lacks it; every other test runs.
        member: Makes the program of a group member ready; address, group and topic are appended, then options: see
            `drivers/member_lines.py`.
        assignors: What its members can be told to use, by the names that the protocol knows them by.
        has_consumer_protocol: Whether its members speak KIP-848 too.
        transactor: Makes its transactional producer ready; address and transactional id are appended: see
            `drivers/transactor_lines.py`.
    """

    name: str
    command: Callable[[], list[str]]
    cannot: Mapping[str, str] = {}
    member: Callable[[], list[str]] | None = None
    assignors: tuple[str, ...] = ()
    has_consumer_protocol: bool = False
    transactor: Callable[[], list[str]] | None = None


def python_driver(module: str, package: str, distribution: str) -> Callable[[], list[str]]:
    """Return the command of a driver in Python."""

    def command() -> list[str]:
        if importlib.util.find_spec(package) is None:
            raise MissingClientError(f"pip install {distribution} (the dependency group `interop`)")
        return [sys.executable, "-m", f"tests.interop.drivers.{module}"]

    return command


def peers_command(*words: str) -> list[str]:
    """Return a command of the folder of peers.

    Raises:
        MissingClientError: there is no such folder, or no Java.
    """
    program = peers_folder() / "peers.py"
    if not program.exists() or shutil.which("java") is None:
        raise MissingClientError(f"Java 17 and the folder of peers (ODRADEK_PEERS, now {program.parent})")
    return [sys.executable, str(program), *words]


def cached(name: str, build: Callable[[Path], None], *, variant: str = "") -> Path:
    """Return a folder outside the checkout with a driver that needs building, built once for its sources.

    Args:
        name: The folder of its sources beside this file.
        build: Finishes a folder that holds a copy of the sources.
        variant: Tells apart what is built from the same sources in several ways.
    """
    sources = sorted(path for path in (HERE / name).iterdir() if path.is_file())
    digest = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in sources)).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek-interop"
    built = home / f"{name}{variant}-{digest}"
    if not built.exists():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as folder:
            work = Path(folder) / "work"
            work.mkdir()
            for path in sources:
                shutil.copy(path, work)
            build(work)
            with contextlib.suppress(OSError):  # another run was quicker
                work.rename(built)
    return built


def run_installer(what: str, command: list[str], folder: Path) -> None:
    """Run a package manager or a compiler in a folder.

    Raises:
        MissingClientError: it is not there, or it failed.
    """
    if shutil.which(command[0]) is None:
        raise MissingClientError(what)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingClientError(f"{what}; `{' '.join(command)}` failed: {done.stderr[-1000:]}")


def java_driver(version: str, program: str = "Driver") -> Callable[[], list[str]]:
    """Return the command of a program with the Java client, compiled against the jars of one version of Kafka."""

    def command() -> list[str]:
        asked = peers_command("classpath", "--version", version)
        listed = subprocess.run(asked, capture_output=True, text=True, check=False)
        if listed.returncode:
            raise MissingClientError(f"the jars of Apache Kafka {version}, by Maven: {listed.stderr[-1000:]}")
        jars = listed.stdout.strip()
        build = ["javac", "-cp", jars, "Driver.java", "Member.java", "Transactor.java", "Tools.java"]
        folder = cached("java", lambda folder: run_installer("a JDK 17", build, folder), variant=f"-{version}")
        # The driver lives for seconds: the quick compiler is enough.
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}{os.pathsep}{folder}", program]

    return command


def kafkajs_driver(program: str = "driver.js") -> list[str]:
    """Return the command of a program with kafkajs, its packages installed as the lock file says."""
    what = "Node 20 with npm, and a package registry"
    if shutil.which("node") is None:
        raise MissingClientError(what)
    install = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    return ["node", str(cached("kafkajs", lambda folder: run_installer(what, install, folder)) / program)]


def franz_go_driver() -> list[str]:
    """Return franz-go's driver, compiled."""
    what = "Go 1.26, and a module proxy"
    build = ["go", "build", "-o", "driver", "."]
    return [str(cached("franz", lambda folder: run_installer(what, build, folder)) / "driver")]


def kcat_driver(module: str) -> Callable[[], list[str]]:
    """Return the command of a program around kcat."""

    def command() -> list[str]:
        if shutil.which("kcat") is None:
            raise MissingClientError("apt-get install kcat")
        return [sys.executable, "-m", f"tests.interop.drivers.{module}"]

    return command


NOT_IN_KCAT: Final = (
    *("timestamps", "produced_offsets", "empty", "binary_headers"),
    *("max_timestamp", "create_topic", "topic_configs", "delete_records"),
)
CLIENTS: Final = {
    client.name: client
    for client in (
        Client(
            "librdkafka",
            python_driver("confluent", "confluent_kafka", "confluent-kafka"),
            member=python_driver("member_confluent", "confluent_kafka", "confluent-kafka"),
            transactor=python_driver("transactor_confluent", "confluent_kafka", "confluent-kafka"),
            assignors=("range", "roundrobin", "cooperative-sticky"),
            has_consumer_protocol=True,
        ),
        Client(
            "kafka-python",
            python_driver("kafka_python", "kafka", "kafka-python"),
            {"null_headers": "it refuses a header without a value"},
            member=python_driver("member_kafka_python", "kafka", "kafka-python"),
            transactor=python_driver("transactor_kafka_python", "kafka", "kafka-python"),
            assignors=("range", "roundrobin"),
        ),
        Client(
            "aiokafka",
            python_driver("aiokafka_driver", "aiokafka", "aiokafka"),
            {"max_timestamp": "its consumer asks by time, for the first and for the last offset"},
            member=python_driver("member_aiokafka", "aiokafka", "aiokafka"),
            transactor=python_driver("transactor_aiokafka", "aiokafka", "aiokafka"),
            assignors=("range", "roundrobin"),
        ),
        Client(
            "java",
            java_driver("4.3.1"),
            member=java_driver("4.3.1", "Member"),
            transactor=java_driver("4.3.1", "Transactor"),
            assignors=("range", "roundrobin", "cooperative-sticky"),
            has_consumer_protocol=True,
        ),
        Client(
            "java-3.4",
            java_driver("3.4.1"),
            member=java_driver("3.4.1", "Member"),
            transactor=java_driver("3.4.1", "Transactor"),
            assignors=("range", "roundrobin", "cooperative-sticky"),
        ),
        Client(
            "franz-go",
            franz_go_driver,
            member=franz_go_driver,
            transactor=franz_go_driver,
            assignors=("range", "roundrobin", "cooperative-sticky"),
        ),
        Client(
            "kcat",
            kcat_driver("kcat"),
            dict.fromkeys(NOT_IN_KCAT, "kcat's command line has no such option"),
            member=kcat_driver("member_kcat"),
            assignors=("range", "roundrobin", "cooperative-sticky"),
        ),
        Client(
            "kafkajs",
            kafkajs_driver,
            {
                "null_headers": "its encoder takes no header without a value",
                "max_timestamp": "it asks by time, for the first and for the last offset",
            },
            member=lambda: kafkajs_driver("member.js"),
            transactor=lambda: kafkajs_driver("transactor.js"),
        ),
    )
}
"""Name to client."""


def those_that(*capabilities: str) -> list[str]:
    """Return the names of the clients that have the capabilities."""
    return [name for name, client in CLIENTS.items() if not any(each in client.cannot for each in capabilities)]
