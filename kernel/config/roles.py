"""Pure core: what a node is in its cluster: broker, controller or both; where controllers are found, and who listens.

| `process.roles` | `controller.quorum.voters` | what it is |
| --- | --- | --- |
| both, the default | not set | a broker alone, which is its own controller: nobody else can join |
| both, or `controller` | this node | the controller, of which others are told to be brokers |
| both, or `controller` | this node and others | one voter of those who keep the metadata together |
| `broker` | other nodes | a broker that follows whoever of them is the active controller |

`controller.quorum.bootstrap.servers` stands for the voters where they are not set: it says where controllers are found,
and the metadata who of them votes. A broker that is no controller may leave out `node.id`: it takes a free one, as with
Kafka until 3.9.

*Source:* Kafka 4.3 `KafkaConfig.validateValues` (KIP-631, KIP-853).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

from ..classes import frozen
from ..errors import ConfigError
from .definitions.drawn_ids import GENERATES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .broker import BrokerConfig

VOTERS: Final = "controller.quorum.voters"
BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"
ROLES: Final = "process.roles"
NODE_ID: Final = "node.id"
NAMES: Final = "controller.listener.names"
BROKER: Final = "broker"
CONTROLLER: Final = "controller"
METADATA_ELECTION: Final = "odradek.metadata.election"
AMONG_VOTERS: Final = "quorum"
"""The election of a metadata log that several voters keep, where nobody chose one."""
OF_ONE: Final = "isr"
"""The election of a metadata log that one node keeps, where nobody chose one."""


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
        voters: Who is named to keep the metadata, by id; empty where the metadata says it, or for a broker alone.
        bootstrap: Where controllers are found besides.
    """

    is_broker: bool
    is_controller: bool
    voters: Mapping[int, ControllerAddress] = attrs.field(factory=dict)
    bootstrap: tuple[ControllerAddress, ...] = ()

    @property
    def controllers(self) -> tuple[ControllerAddress, ...]:
        """Where controllers are found, each once; empty for a broker alone, which is its own."""
        return tuple(dict.fromkeys((*self.voters.values(), *self.bootstrap)))

    @property
    def controller(self) -> ControllerAddress | None:
        """Where the controller is found, the first of several; None for a broker alone, which is its own."""
        return next(iter(self.controllers), None)

    @property
    def names_several(self) -> bool:
        """Whether several nodes are to keep the metadata together."""
        return (len(self.voters) or len(self.controllers)) > 1

    @property
    def is_among_several(self) -> bool:
        """Whether it keeps the metadata log together with others."""
        return self.is_controller and self.names_several

    @property
    def serves_controller(self) -> bool:
        """Whether it has a listener for other nodes of its controller."""
        return self.is_controller and bool(self.controllers)


def parse_roles(config: BrokerConfig) -> Roles:
    """Return what a node is.

    Raises:
        ConfigError: The keys contradict each other.
    """
    roles = config.get_list(ROLES)
    is_broker, is_controller = BROKER in roles, CONTROLLER in roles
    parsed = Roles(is_broker, is_controller, _voters(config), tuple(map(_address, config.get_list(BOOTSTRAP))))
    if not parsed.controllers and not (is_broker and is_controller):
        what = f"{ROLES}={','.join(roles)} needs to know the controller"
        raise ConfigError(what, where=config.where(ROLES), hint=f"set {VOTERS}=ID@HOST:PORT")
    if parsed.voters and not takes_id(config):
        _check_voters(config, parsed)
    return parsed


def takes_id(config: BrokerConfig) -> bool:
    """Return whether a node has no id yet, and takes one that is free: a broker that is no controller."""
    is_broker = config.get_list(ROLES) == (BROKER,)
    return is_broker and not config.is_set(NODE_ID) and config.get_bool(GENERATES)


def _check_voters(config: BrokerConfig, roles: Roles) -> None:
    node_id = config.node_id
    if roles.is_controller and node_id not in roles.voters:
        known = ", ".join(map(str, roles.voters))
        is_none_of = "is not the voter" if len(roles.voters) == 1 else "is none of the voters"
        what = f"{ROLES} has controller, and node.id {node_id} {is_none_of} of {VOTERS}, {known}"
        raise ConfigError(what, where=config.where(ROLES) or config.where(VOTERS), hint=f"{ROLES}=broker")
    if not roles.is_controller and node_id in roles.voters:
        what = f"node.id {node_id} is {'the' if len(roles.voters) == 1 else 'a'} voter of {VOTERS}"
        what += f", and {ROLES} has no controller"
        raise ConfigError(what, where=config.where(ROLES), hint="give this broker another node.id")


def metadata_election(config: BrokerConfig, *, is_founded: bool = False) -> str:
    """Return the name of the metadata log's election: what is set, else what the number of voters asks for.

    Args:
        config: The node's.
        is_founded: Whether the metadata log names its voters, be it one: they vote.
    """
    votes = is_founded or parse_roles(config).names_several
    return config.get_text(METADATA_ELECTION) or (AMONG_VOTERS if votes else OF_ONE)


def _voters(config: BrokerConfig) -> dict[int, ControllerAddress]:
    voters: dict[int, ControllerAddress] = {}
    for text in config.get_list(VOTERS):
        voter, _, address = text.partition("@")
        if int(voter) in voters:
            raise ConfigError(f"{VOTERS} has voter {voter} twice", where=config.where(VOTERS))
        voters[int(voter)] = _address(address)
    return voters


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
