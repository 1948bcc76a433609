"""Pure core: where a broker listens and what it tells clients to connect to.

`listeners` names endpoints, `NAME://host:port`; `listener.security.protocol.map` says how each name is secured;
`advertised.listeners` says how clients reach it. Listeners of the controller are those that
`controller.listener.names` names; a broker alone, which is its own controller, needs none and leaves them out.

*Source:* Kafka 4.3 `KafkaConfig` and `AbstractKafkaConfig` (rules of listeners), KIP-103, KIP-631.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ..classes import frozen
from ..errors import ConfigError
from .definitions.vocabulary import MAX_INT
from .keys import Part
from .registry import listener_and_key
from .roles import parse_roles

if TYPE_CHECKING:
    from .broker import BrokerConfig

PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"
SECURITY_PROTOCOLS: Final = {PLAINTEXT: 0, SSL: 1}
"""Kafka's numbers, which registrations tell."""
_PROTOCOLS: Final = (PLAINTEXT, SSL, "SASL_PLAINTEXT", "SASL_SSL")
_ENDPOINT: Final = re.compile(r"([^:/]+)://(?:\[([0-9a-zA-Z:.%_-]*)\]|([0-9a-zA-Z._%-]*)):(-?[0-9]{1,9})")
_PROTOCOL_MAP: Final = "listener.security.protocol.map"
MAX_PORT: Final = 65_535
_SHOWN_MAX: Final = 100
META_ADDRESSES: Final = frozenset({"0.0.0.0", "::", "0:0:0:0:0:0:0:0"})


@frozen
class Listener:
    """An endpoint that clients connect to.

    Attributes:
        name: Its name, in capitals.
        host: What is bound; empty for every address of the machine.
        port: What is bound; 0 takes a free one.
        security_protocol: `PLAINTEXT` or `SSL`.
        advertised_host: What clients are told; empty when that is the machine's own name.
        advertised_port: What clients are told; 0 when that is the port that was bound.
        is_advertised: Whether clients are told of it at all.
    """

    name: str
    host: str
    port: int
    security_protocol: str
    advertised_host: str
    advertised_port: int
    is_advertised: bool = True

    def advertised(self, bound_port: int, machine: str) -> tuple[str, int]:
        """Return the address that clients are told.

        Args:
            bound_port: The port that was bound.
            machine: The machine's own name, for a listener that is bound to every address.
        """
        return self.advertised_host or machine, self.advertised_port or bound_port

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@frozen
class _Endpoint:
    name: str
    host: str
    port: int


def parse_listeners(config: BrokerConfig) -> list[Listener]:
    """Return the broker's listeners in the order of `listeners`; none where the node is no broker.

    Raises:
        ConfigError: The keys of listeners are wrong or contradict each other; names the file and line.
    """
    where = config.where("listeners")
    endpoints = _endpoints(config, "listeners")
    controllers = {name.upper() for name in config.get_list("controller.listener.names")}
    _check_distinct(endpoints, where)
    served = [endpoint for endpoint in endpoints if endpoint.name not in controllers]
    if not served and not parse_roles(config).is_broker:
        return []
    if not served:
        raise ConfigError("listeners names none that serves clients", where=where, hint="PLAINTEXT://127.0.0.1:9092")
    advertised = _advertised(config, served, controllers)
    protocols = _protocols(config)
    listeners = [
        _listener(endpoint, _protocol_of(endpoint.name, protocols, where), advertised, config) for endpoint in served
    ]
    _check_inter_broker(config, [listener.name for listener in listeners if listener.is_advertised])
    return listeners


def parse_controller_listeners(config: BrokerConfig) -> list[Listener]:
    """Return the listeners of the controller that this node serves: none of a broker alone, or of one that has none.

    Raises:
        ConfigError: The keys of listeners are wrong or contradict each other.
    """
    if not parse_roles(config).serves_controller:
        return []
    names = {name.upper() for name in config.get_list("controller.listener.names")}
    return [
        Listener(each.name, each.host, each.port, controller_protocol(config, each.name), each.host, each.port)
        for each in _endpoints(config, "listeners")
        if each.name in names
    ]


def controller_endpoints(config: BrokerConfig, machine: str = "") -> list[tuple[str, str, int]]:
    """Return name, host and port under which other nodes find this node's controller; the first is the one they use.

    Where `advertised.listeners` says nothing of one: the first is where the quorum's keys say that this node is, others
    are where they listen.

    Args:
        config: The node's.
        machine: Its machine's name, for a listener that is bound to every address.
    """
    roles = parse_roles(config)
    named = roles.controller if len(roles.controllers) == 1 else roles.voters.get(config.node_id)
    advertised = {each.name: each for each in _endpoints(config, "advertised.listeners")}
    found = []
    for position, listener in enumerate(parse_controller_listeners(config)):
        told = advertised.get(listener.name)
        if told is None and named is not None and position == 0:
            found.append((listener.name, named.host, named.port))
        else:
            host, port = (listener.host, listener.port) if told is None else (told.host, told.port)
            found.append((listener.name, machine if host in {"", *META_ADDRESSES} else host, port))
    return found


def controller_protocol(config: BrokerConfig, name: str) -> str:
    """Return how a listener of the controller is secured: in the clear where nothing is said, as in Kafka.

    Raises:
        ConfigError: By a protocol that is not built.
    """
    protocols = _protocols(config)
    if not config.is_set(_PROTOCOL_MAP):
        protocols.setdefault(name.upper(), PLAINTEXT)
    return _protocol_of(name.upper(), protocols, config.where("listeners"))


def inter_broker_listener(config: BrokerConfig) -> str:
    """Return the name of the listener by which brokers reach each other.

    It is `inter.broker.listener.name`, or else the listener that is named as `security.inter.broker.protocol`; where
    neither is set and there is none of that name, the first.
    """
    names = [listener.name for listener in parse_listeners(config) if listener.is_advertised]
    chosen = config.get_text("inter.broker.listener.name").upper()
    if chosen:
        return chosen
    protocol = config.get_text("security.inter.broker.protocol")
    return protocol if protocol in names or not names else names[0]


def _listener(
    endpoint: _Endpoint, protocol: str, advertised: dict[str, _Endpoint] | None, config: BrokerConfig
) -> Listener:
    if advertised is not None:
        told = advertised.get(endpoint.name)
        if told is None:
            return Listener(endpoint.name, endpoint.host, endpoint.port, protocol, "", 0, is_advertised=False)
        return Listener(endpoint.name, endpoint.host, endpoint.port, protocol, told.host, told.port)
    if endpoint.host in META_ADDRESSES:
        raise ConfigError(
            f"clients cannot connect to the address {endpoint.host} that listener {endpoint.name} would advertise",
            where=config.where("listeners"),
            hint=f"set advertised.listeners={endpoint.name}://HOST:{endpoint.port}, or leave the host empty",
        )
    return Listener(endpoint.name, endpoint.host, endpoint.port, protocol, endpoint.host, endpoint.port)


def _endpoints(config: BrokerConfig, key: str) -> list[_Endpoint]:
    found = []
    for text in config.get_list(key):
        match = _ENDPOINT.fullmatch(text)
        if match is None or not 0 <= int(match[4]) <= MAX_PORT:
            what = f"{key} has {text!r}, which is not NAME://HOST:PORT"
            raise ConfigError(what, where=config.where(key), hint="PLAINTEXT://127.0.0.1:9092")
        found.append(_Endpoint(match[1].upper(), match[2] or match[3] or "", int(match[4])))
    return found


def _check_distinct(endpoints: Sequence[_Endpoint], where: str) -> None:
    names = [endpoint.name for endpoint in endpoints]
    if doubled := _first_doubled(names):
        raise ConfigError(f"listeners has two listeners named {doubled}", where=where, hint="each needs its own name")
    by_port: dict[int, list[str]] = {}
    for endpoint in endpoints:
        if endpoint.port:
            by_port.setdefault(endpoint.port, []).append(endpoint.host)
    for port, hosts in by_port.items():
        # One IPv4 and one IPv6 address may share a port; anything else would be refused by the system later.
        if len(hosts) > 1 and not (len(hosts) == 2 and (":" in hosts[0]) != (":" in hosts[1])):
            raise ConfigError(
                f"listeners has two listeners on port {port}", where=where, hint="each needs its own port"
            )


def _first_doubled(names: Iterable[str]) -> str:
    seen = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _advertised(
    config: BrokerConfig, served: Sequence[_Endpoint], controllers: set[str]
) -> dict[str, _Endpoint] | None:
    """Return what `advertised.listeners` says by name, or `None` when it is not set."""
    endpoints = _endpoints(config, "advertised.listeners")
    if not endpoints:
        return None
    where = config.where("advertised.listeners")
    names = {endpoint.name for endpoint in served}
    if doubled := _first_doubled(endpoint.name for endpoint in endpoints):
        raise ConfigError(f"advertised.listeners has two listeners named {doubled}", where=where)
    for endpoint in endpoints:
        if endpoint.name not in names | controllers:
            what = f"advertised.listeners has {endpoint.name}, which is not one of listeners"
            raise ConfigError(what, where=where, hint=f"one of: {', '.join(sorted(names))}")
        if endpoint.host in META_ADDRESSES:
            what = f"advertised.listeners has {endpoint.host}, which no client can connect to"
            raise ConfigError(what, where=where, hint="name the address that clients reach")
    told = {endpoint.name: endpoint for endpoint in endpoints if endpoint.name in names}
    if not told:
        raise ConfigError("advertised.listeners names none that serves clients", where=where)
    return told


def _protocols(config: BrokerConfig) -> dict[str, str]:
    key = _PROTOCOL_MAP
    where = config.where(key)
    protocols: dict[str, str] = {}
    for entry in config.get_text(key).split(","):
        name, separator, protocol = (part.strip() for part in entry.rpartition(":"))
        if not entry.strip():
            continue
        if not separator or not name or protocol.upper() not in _PROTOCOLS:
            hint = f"NAME:PROTOCOL, where PROTOCOL is one of {', '.join(_PROTOCOLS)}"
            raise ConfigError(f"{key} has {entry.strip()!r}, which maps nothing", where=where, hint=hint)
        protocols[name.upper()] = protocol.upper()
    return protocols


def _protocol_of(name: str, protocols: dict[str, str], where: str) -> str:
    protocol = protocols.get(name)
    if protocol is None:
        hint = f"add {name}:PLAINTEXT to {_PROTOCOL_MAP}"
        raise ConfigError(f"no security protocol is defined for listener {name}", where=where, hint=hint)
    if protocol.startswith("SASL_"):
        what = f"listener {name} is secured by {protocol}, and SASL is not built yet"
        raise ConfigError(what, where=where, hint="use PLAINTEXT or SSL")
    return protocol


def check_keys_of_one_listener(config: BrokerConfig) -> None:
    """Refuse what would be set on one listener in vain.

    Raises:
        ConfigError: Kafka's prefix has capitals, or the key holds for all listeners alike.
    """
    for name, setting in config.static.items():
        if not (found := listener_and_key(name)):
            continue
        listener, base = found
        if listener != listener.lower():
            right = name.replace(f".{listener}.", f".{listener.lower()}.", 1)
            raise ConfigError(f"unknown broker key {name!r}", where=setting.where, hint=f"it is written {right!r}")
        part = config.key(name).part
        if part.stands and part is not Part.TLS:
            what = f"{name} is refused: {base} holds for all listeners here"
            raise ConfigError(what, where=setting.where, hint=f"remove it, or set {base}")


def warnings_of_listeners(config: BrokerConfig) -> list[str]:
    """Return a line for every key of a listener that does not exist or does not speak TLS, and one for all of TLS.

    Who sets `ssl.client.auth=required` and no listener that speaks TLS should not believe that a lock is on.
    """
    names = {endpoint.name for endpoint in _endpoints(config, "listeners")}
    names |= {name.upper() for name in config.get_list("controller.listener.names")}
    protocols = {listener.name: listener.security_protocol for listener in parse_listeners(config)}
    found, of_all = [], []
    for name, setting in config.static.items():
        is_tls = config.key(name).part is Part.TLS
        listener = of_one[0].upper() if (of_one := listener_and_key(name)) else ""
        if listener and listener not in names:
            what = f"belongs to listener {listener}, which listeners does not name; it has no effect"
            found.append(f"{setting.where}: {name} {what}")
        elif is_tls and listener and protocols.get(listener) == PLAINTEXT:
            found.append(f"{setting.where}: {name} has no effect: listener {listener} does not speak TLS")
        elif is_tls and not listener:
            of_all.append(name)
    if of_all and SSL not in protocols.values():
        verb = "have" if len(of_all) > 1 else "has"
        found.append(f"{config.where(of_all[0])}: {', '.join(of_all)} {verb} no effect: no listener speaks TLS")
    return found


def _check_inter_broker(config: BrokerConfig, names: Sequence[str]) -> None:
    key, protocol_key = "inter.broker.listener.name", "security.inter.broker.protocol"
    if config.get_text(key) and config.is_set(protocol_key):
        what = f"only one of {key} and {protocol_key} can be set"
        raise ConfigError(what, where=config.where(key), hint=f"remove {protocol_key}")
    if config.is_set(protocol_key):
        key = protocol_key  # Kafka looks for the listener of that name
    chosen = config.get_text(key).upper()
    if not chosen:
        return
    if chosen not in names:
        what = f"{key} is {chosen}, which is not an advertised listener"
        raise ConfigError(what, where=config.where(key), hint=f"one of: {', '.join(names)}")


def connection_limits_by_host(config: BrokerConfig) -> dict[str, int]:
    """Return `max.connections.per.ip.overrides` as address, as the system writes it, to limit.

    Raises:
        ConfigError: An entry is not `ADDRESS:COUNT`.
    """
    key = "max.connections.per.ip.overrides"
    limits = {}
    for entry in config.get_text(key).split(","):
        if not entry.strip():
            continue
        host, separator, count = (part.strip() for part in entry.rpartition(":"))
        is_count = count.isascii() and count.isdigit() and len(count) <= len(str(MAX_INT)) and int(count) <= MAX_INT
        if not separator or not host or not is_count:
            what = f"{key} has {entry.strip()[:_SHOWN_MAX]!r}, which is not ADDRESS:COUNT"
            raise ConfigError(what, where=config.where(key), hint=f"127.0.0.1:100, the count at most {MAX_INT}")
        limits[_address(host.strip("[]"), key, config)] = int(count)
    return limits


def _address(text: str, key: str, config: BrokerConfig) -> str:
    import ipaddress  # only where a limit is set: no other start pays for it

    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        # Connections are known by their addresses: a name would limit nobody.
        what = f"{key} has {text!r}, which is no address, and names are not looked up"
        raise ConfigError(what, where=config.where(key), hint="127.0.0.1:100") from error
