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
    from collections.abc import Iterable, Iterator

READY_LIMIT_S: Final = 30.0
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
    folder = peers_folder()
    if not (folder / "peers.py").exists():
        raise BrokerError(f"no peers.py in {folder}: set ODRADEK_PEERS")
    sys.path.insert(0, str(folder))
    try:
        peers: Any = importlib.import_module("peers")
    finally:
        sys.path.remove(str(folder))
    with peers.start("kafka", settings=settings()) as peer:
        host, _, port = peer.bootstrap.rpartition(":")
        _turn_off(_settings()["kafka"]["features_off"], host, int(port))
        yield peer.version, host, int(port)


@contextmanager
def odradek(data_dir: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Run our broker on a free port, with further settings as in `key=value`; gives host and port.

    Raises:
        BrokerError: it ended, or was not ready in time; with what it said.
    """
    command = [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(data_dir)]
    for option in (*(f"{key}={value}" for key, value in settings().items()), *options):
        command += ["--set", option]
    log_path = data_dir.parent / "broker.log"
    with (
        log_path.open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        try:
            yield _ready_address(process, log_path)
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
    host, _, port = line[1].rpartition(":")
    return host, int(port)
