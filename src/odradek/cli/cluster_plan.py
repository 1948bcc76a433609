"""Pure core: what each broker of `odradek serve --brokers N` is started with.

    --listen HOST:PORT    broker 1: HOST:PORT    broker 2: HOST:PORT+1   ...   their controllers: HOST:PORT+N, ...
    --data-dir DIR        broker 1: DIR/1        broker 2: DIR/2         ...

The first brokers are controllers, too: so many of them as keep the metadata together.

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
VOTERS_MAX: Final = 3
"""How many brokers of a new cluster keep its metadata together, where there are as many."""
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
    """One broker's part.

    Attributes:
        node_id: Its number.
        options: What it is set to, as `--set` has it.
        data_dir: Its data directory.
        turn: When it is told to end: those with a smaller number are gone by then. Who keeps metadata goes last, one
            after the other, as it moves the leaders of those that go before.
    """

    node_id: int
    options: tuple[str, ...]
    data_dir: PurePath
    turn: int = 0


def plan_brokers(
    count: int,
    *,
    listen: Sequence[str],
    data_dir: PurePath,
    options: Sequence[str],
    free_port: Callable[[str], int],
    voters: int = 1,
) -> list[BrokerPlan]:
    """Return what each of `count` brokers is started with.

    Args:
        count: How many, 2 to `BROKERS_MAX`.
        listen: `--listen`, at most one.
        data_dir: Below which each has its directory.
        options: `--set`, for all of them.
        free_port: Returns a port of a host that nobody has.
        voters: How many of them keep the metadata, 1 to `count`: the first ones.

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
    if port + count + voters - 1 > MAX_PORT:
        raise ConfigError(f"there are not {count + voters - 1} ports after {port}", where=f"--listen {listen[0]}")
    ports = [port + number if port else free_port(host) for number in range(count + voters)]
    controllers = [f"{host}:{each}" for each in ports[count:]]
    return [
        BrokerPlan(
            number,
            (*_own(number, f"{host}:{ports[number - 1]}", controllers), *_counted(options, number)),
            data_dir / str(number),
            turn=max(0, voters - number + 1),
        )
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


def _own(number: int, address: str, controllers: Sequence[str]) -> list[str]:
    is_controller = number <= len(controllers)
    listeners = [f"PLAINTEXT://{address}"]
    if is_controller:
        listeners.append(f"CONTROLLER://{controllers[number - 1]}")
    voters = ",".join(f"{voter}@{controller}" for voter, controller in enumerate(controllers, start=1))
    return [
        f"node.id={number}",
        f"process.roles={'broker,controller' if is_controller else 'broker'}",
        f"listeners={','.join(listeners)}",
        f"controller.quorum.voters={voters}",
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
