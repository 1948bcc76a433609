"""Pure core: what a node is in its cluster: broker, controller or both; where the controller is found, and who listens.

| `process.roles` | `controller.quorum.voters` | what it is |
| --- | --- | --- |
| both, the default | not set | a broker alone, which is its own controller: nobody else can join |
| both, or `controller` | this node | the controller, of which others are told to be brokers |
| `broker` | another node | a broker that follows that controller |

`controller.quorum.bootstrap.servers` stands for the voters where they are not set. A quorum has one voter here.

*Source:* Kafka 4.3 `KafkaConfig.validateValues` (KIP-631, KIP-853).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..classes import frozen
from ..errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .broker import BrokerConfig

VOTERS: Final = "controller.quorum.voters"
BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"
ROLES: Final = "process.roles"
NAMES: Final = "controller.listener.names"
BROKER: Final = "broker"
CONTROLLER: Final = "controller"


class ControllerAddress(NamedTuple):
    """Where the controller listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen
class Roles:
    """What a node is.

    Attributes:
        is_broker: Whether it keeps partitions and serves clients.
        is_controller: Whether it keeps the metadata log.
        controller: Where the controller is found; None for a broker alone, which is its own.
    """

    is_broker: bool
    is_controller: bool
    controller: ControllerAddress | None

    @property
    def serves_controller(self) -> bool:
        """Whether it has a listener for other brokers of its controller."""
        return self.is_controller and self.controller is not None


def parse_roles(config: BrokerConfig) -> Roles:
    """Return what a node is.

    Raises:
        ConfigError: The keys contradict each other, or ask for a quorum of several voters.
    """
    roles = config.get_list(ROLES)
    is_broker, is_controller = BROKER in roles, CONTROLLER in roles
    voters = _voters(config)
    if not voters:
        address = _bootstrap(config)
        if address is None and not (is_broker and is_controller):
            what = f"{ROLES}={','.join(roles)} needs to know the controller"
            raise ConfigError(what, where=config.where(ROLES), hint=f"set {VOTERS}=ID@HOST:PORT")
        return Roles(is_broker, is_controller, address)
    if len(voters) > 1:
        what = f"{VOTERS} names {len(voters)} voters, and a quorum of several is not built yet"
        raise ConfigError(what, where=config.where(VOTERS), hint="name the one node that keeps the metadata")
    (voter, address), node_id = next(iter(voters.items())), config.node_id
    if is_controller and voter != node_id:
        what = f"{ROLES} has controller, and node.id {node_id} is not the voter of {VOTERS}, {voter}"
        raise ConfigError(what, where=config.where(ROLES) or config.where(VOTERS), hint=f"{ROLES}=broker")
    if not is_controller and voter == node_id:
        what = f"node.id {node_id} is the voter of {VOTERS}, and {ROLES} has no controller"
        raise ConfigError(what, where=config.where(ROLES), hint="give this broker another node.id")
    return Roles(is_broker, is_controller, address)


def _voters(config: BrokerConfig) -> dict[int, ControllerAddress]:
    voters: dict[int, ControllerAddress] = {}
    for text in config.get_list(VOTERS):
        voter, _, address = text.partition("@")
        if int(voter) in voters:
            raise ConfigError(f"{VOTERS} has voter {voter} twice", where=config.where(VOTERS))
        voters[int(voter)] = _address(address)
    return voters


def _bootstrap(config: BrokerConfig) -> ControllerAddress | None:
    servers = config.get_list(BOOTSTRAP)
    if len(servers) > 1:
        what = f"{BOOTSTRAP} names {len(servers)} controllers, and a quorum of several is not built yet"
        raise ConfigError(what, where=config.where(BOOTSTRAP), hint="name the one node that keeps the metadata")
    return _address(servers[0]) if servers else None


def _address(text: str) -> ControllerAddress:
    host, _, port = text.rpartition(":")
    return ControllerAddress(host.strip("[]"), int(port))


def check_roles(config: BrokerConfig) -> None:
    """See that roles, voters and listeners fit together.

    Raises:
        ConfigError: They do not; worded like Kafka's refusal where it has one.
    """
    roles = parse_roles(config)
    names = _controller_names(config)
    listeners = _listener_names(config.get_list("listeners"))
    ours = [name for name in listeners if name in names]
    if roles.controller is not None and not names:
        what = f"{NAMES} must contain at least one value"
        raise ConfigError(what, where=config.where(VOTERS) or config.where(BOOTSTRAP), hint=f"{NAMES}=CONTROLLER")
    if not roles.is_controller and ours:
        what = f"{NAMES} must not contain a value appearing in listeners where {ROLES} has no controller: {ours[0]}"
        raise ConfigError(what, where=config.where("listeners"), hint=f"leave {ours[0]} out of listeners")
    if roles.serves_controller and not ours:
        what = f"{NAMES} must contain at least one value appearing in listeners where {ROLES} has controller"
        hint = f"add {names[0]}://{roles.controller} to listeners"
        raise ConfigError(what, where=config.where("listeners"), hint=hint)
    if not roles.is_broker and len(ours) < len(listeners):
        what = f"{ROLES} has no broker, and listeners has {next(name for name in listeners if name not in names)}"
        raise ConfigError(what, where=config.where("listeners"), hint=f"leave what {NAMES} does not name out of it")


def _controller_names(config: BrokerConfig) -> Sequence[str]:
    return [name.upper() for name in config.get_list(NAMES)]


def _listener_names(listeners: Sequence[str]) -> list[str]:
    return [listener.partition(":")[0].upper() for listener in listeners]
