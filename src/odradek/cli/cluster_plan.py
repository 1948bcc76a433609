"""Pure core: what each broker of `odradek serve --brokers N` is started with.

    --listen HOST:PORT    broker 1: HOST:PORT    broker 2: HOST:PORT+1   ...   its controller: HOST:PORT+N
    --data-dir DIR        broker 1: DIR/1        broker 2: DIR/2         ...

With port 0 all ports are free ones.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.kernel.config.listeners import MAX_PORT
from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.kernel.config.broker import BrokerConfig

DEFAULT_LISTEN: Final = "127.0.0.1:9092"
BROKERS_MAX: Final = 64
OF_EACH: Final = frozenset(
    {
        *("node.id", "broker.id", "process.roles", "listeners", "advertised.listeners", "log.dirs", "log.dir"),
        *("controller.listener.names", "controller.quorum.voters", "controller.quorum.bootstrap.servers"),
        *("listener.security.protocol.map", "inter.broker.listener.name", "metadata.log.dir"),
    }
)
"""Keys whose values differ between the brokers of a cluster, or bind them together."""
NEVER_ALIKE: Final = ("advertised.listeners", "metadata.log.dir")
"""Keys of `OF_EACH` that the plan leaves to their defaults: what a file says of them would be said of all brokers."""
COUNTED: Final = "odradek.http.listener"
"""A key whose port is counted up from broker to broker."""


class BrokerPlan(NamedTuple):
    """One broker's part: its number, its options as `--set` has them, and its data directory."""

    node_id: int
    options: tuple[str, ...]
    data_dir: PurePath


def plan_brokers(
    count: int, *, listen: Sequence[str], data_dir: PurePath, options: Sequence[str], free_port: Callable[[str], int]
) -> list[BrokerPlan]:
    """Return what each of `count` brokers is started with; the first is the controller, too.

    Args:
        count: How many, 2 to `BROKERS_MAX`.
        listen: `--listen`, at most one.
        data_dir: Below which each has its directory.
        options: `--set`, for all of them.
        free_port: Returns a port of a host that nobody has.

    Raises:
        ConfigError: Something is given that each broker needs to have for itself.
    """
    if not 2 <= count <= BROKERS_MAX:
        raise ConfigError(f"expected 1 to {BROKERS_MAX} brokers", where=f"--brokers {count}")
    if len(listen) > 1:
        raise ConfigError("brokers of one command have one listener each", where=f"--listen {listen[1]}")
    for option in options:
        key = option.partition("=")[0].strip()
        if key in OF_EACH:
            hint = "start each broker by an `odradek serve` of its own to set it"
            raise ConfigError(f"{key} is set by --brokers for each broker", where=f"--set {key}", hint=hint)
    host, port = _address(listen[0] if listen else DEFAULT_LISTEN, "--listen")
    if port + count > MAX_PORT:
        raise ConfigError(f"there are not {count} ports after {port}", where=f"--listen {listen[0]}")
    ports = [port + number if port else free_port(host) for number in range(count + 1)]
    return [
        BrokerPlan(number, (*_own(number, host, ports), *_counted(options, number)), data_dir / str(number))
        for number in range(1, count + 1)
    ]


def check_read(config: BrokerConfig) -> None:
    """Refuse what a file or the environment says of all brokers alike, though each needs its own.

    Args:
        config: As one of the brokers has it.

    Raises:
        ConfigError: One of `NEVER_ALIKE` is set.
    """
    for key in NEVER_ALIKE:
        if config.is_set(key):
            hint = "leave it out, or start each broker by an `odradek serve` of its own"
            raise ConfigError(f"{key} would be the same for all brokers", where=config.where(key), hint=hint)


def _own(number: int, host: str, ports: Sequence[int]) -> list[str]:
    controller = f"{host}:{ports[-1]}"
    listeners = [f"PLAINTEXT://{host}:{ports[number - 1]}"]
    if number == 1:
        listeners.append(f"CONTROLLER://{controller}")
    return [
        f"node.id={number}",
        f"process.roles={'broker,controller' if number == 1 else 'broker'}",
        f"listeners={','.join(listeners)}",
        f"controller.quorum.voters=1@{controller}",
        "controller.listener.names=CONTROLLER",
    ]


def _counted(options: Sequence[str], number: int) -> list[str]:
    return [_count_up(option, number) if option.startswith(f"{COUNTED}=") else option for option in options]


def _count_up(option: str, number: int) -> str:
    host, port = _address(option.partition("=")[2], f"--set {COUNTED}")
    return f"{COUNTED}={host}:{port + number - 1 if port else 0}"


def _address(text: str, where: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or int(port) > MAX_PORT:
        raise ConfigError("expected HOST:PORT", where=f"{where} {text}", hint=f"{where} {DEFAULT_LISTEN}")
    if not host.strip("[]"):
        raise ConfigError("brokers tell each other this address: name it", where=f"{where} {text}")
    return host, int(port)
