"""Shell: the two brokers of the comparison: Apache Kafka from the folder of peers, and ours, each a process."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.waiting import is_readable
from tools.peers_folder import peers_folder

from .conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

READY_LIMIT_S: Final = 120.0
STOP_LIMIT_S: Final = 10.0
_SAFE_DOWNGRADE: Final = 2


class BrokerError(Exception):
    """A broker did not start."""


def settings() -> dict[str, str]:
    """Return what both brokers are started with."""
    both: dict[str, str] = _settings()["both"]
    return both


def _settings() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "settings.toml").read_text())


def _turn_off(features: Iterable[str], host: str, port: int) -> None:
    """Have Kafka do without parts that are not built here."""
    talk = Conversation("features", host, port)
    updates = [{"feature": each, "max_version_level": 0, "upgrade_type": _SAFE_DOWNGRADE} for each in features]
    answer = talk.quietly("UpdateFeatures", 2, {"timeout_ms": 10_000, "feature_updates": updates})
    talk.close()
    if not isinstance(answer, dict) or answer["error_code"]:
        raise BrokerError(f"Kafka does not turn off {', '.join(features)}: {answer}")


@contextmanager
def kafka() -> Iterator[tuple[str, str, int]]:
    """Run Apache Kafka; gives its version, host and port.

    Raises:
        BrokerError: there is no folder of peers, or a feature stays on.
    """
    with _kafka(1) as (version, [address]):
        yield version, *address


@contextmanager
def three_of_kafka() -> Iterator[tuple[str, dict[str, tuple[str, int]]]]:
    """Run three brokers of Apache Kafka; gives the version, and by their ids where they are.

    Raises:
        BrokerError: there is no folder of peers, or a feature stays on.
    """
    with _kafka(3) as (version, addresses):
        yield version, by_node(addresses)


@contextmanager
def _kafka(count: int) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    folder = peers_folder()
    if not (folder / "peers.py").exists():
        raise BrokerError(f"no peers.py in {folder}: set ODRADEK_PEERS")
    sys.path.insert(0, str(folder))
    try:
        peers: Any = importlib.import_module("peers")
    finally:
        sys.path.remove(str(folder))
    with peers.start(
        "kafka", brokers=count, settings=settings() | _settings()["three"] if count > 1 else settings()
    ) as peer:
        addresses = [address_of(each) for each in peer.bootstrap.split(",")]
        _turn_off(_settings()["kafka"]["features_off"], *addresses[0])
        yield peer.version, addresses


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def by_node(addresses: Sequence[tuple[str, int]]) -> dict[str, tuple[str, int]]:
    """Return by their ids where brokers are, as the first of them tells it once it knows of all."""
    host, port = addresses[0]
    talk = Conversation("nodes", host, port)
    answer = talk.until("Metadata", 9, {"topics": []}, lambda told: len(told["brokers"]) == len(addresses))
    talk.close()
    return {str(broker["node_id"]): (broker["host"], broker["port"]) for broker in answer["brokers"]}


@contextmanager
def three_of_odradek(data_dir: Path) -> Iterator[dict[str, tuple[str, int]]]:
    """Run three brokers of ours; gives by their ids where they are.

    Raises:
        BrokerError: they ended, or were not ready in time; with what they said.
    """
    options = settings() | _settings()["three"]
    with _serving(data_dir, "--brokers", "3", options=[f"{key}={value}" for key, value in options.items()]) as ready:
        yield by_node([ready() for _ in range(3)])


@contextmanager
def odradek(data_dir: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Run our broker on a free port, with further settings as in `key=value`; gives host and port.

    Raises:
        BrokerError: it ended, or was not ready in time; with what it said.
    """
    given = (*(f"{key}={value}" for key, value in settings().items()), *options)
    with _serving(data_dir, options=given) as ready:
        yield ready()


@contextmanager
def _serving(data_dir: Path, *words: str, options: Iterable[str]) -> Iterator[Callable[[], tuple[str, int]]]:
    """Run `odradek serve`; gives what waits for its next line that says that a broker is ready."""
    command = [sys.executable, "-m", "odradek", "serve", *words, "--listen", "127.0.0.1:0", "--data-dir", str(data_dir)]
    for option in options:
        command += ["--set", option]
    log_path = data_dir.parent / "broker.log"
    with (
        log_path.open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, bufsize=0) as process,
    ):
        try:
            yield lambda: _ready_address(process, log_path)
        finally:
            process.terminate()
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _ready_address(process: subprocess.Popen[bytes], log_path: Path) -> tuple[str, int]:
    assert process.stdout is not None
    is_ready = is_readable(process.stdout, READY_LIMIT_S)
    line = process.stdout.readline().decode().split() if is_ready else []
    if len(line) < 2 or line[0] != "ready":
        raise BrokerError(f"odradek serve said {' '.join(line) or 'nothing'!r}\n{log_path.read_text()[-4000:]}")
    return address_of(line[1])
