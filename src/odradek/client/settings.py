"""Pure core: settings of clients: Kafka's names, types and defaults; unknown, contradictory and unbuilt ones refused.

A client takes a mapping of Kafka's keys. Values may be texts, as in a properties file, or Python values: numbers,
booleans, lists, and objects where Kafka has class names (a serializer, a partitioner, interceptors). A text there is
read as `module:name`.

*Source:* Kafka 4.3 `CommonClientConfigs`, `SslConfigs`, `ConfigDef`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.config.values import (
    AtLeast,
    ConfigType,
    InvalidValueError,
    ListOf,
    OneOf,
    OneOfAnyCase,
    parse,
    render,
)
from odradek.kernel.errors import ConfigError
from odradek.kernel.peers.settings import ConnectionSettings, TlsClientSettings

from .refused_keys import SASL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from odradek.kernel.config.values import Validator

    from .refused_keys import Refusal

_INT: Final = ConfigType.INT
_LONG: Final = ConfigType.LONG
_TEXT: Final = ConfigType.STRING
_LIST: Final = ConfigType.LIST
_PASSWORD: Final = ConfigType.PASSWORD
INT_MAX: Final = 2**31 - 1
_INTERCEPTORS: Final = "interceptor.classes"
_STORE_TYPES: Final = OneOfAnyCase(("JKS", "PKCS12", "PEM"))
_STORE_TYPE_DOC: Final = "JKS, PKCS12 (each also reads the other) or PEM; without it the file's content tells."


@attrs.frozen
class ClientKey:
    """One setting of a client.

    Attributes:
        name: As in Kafka.
        type: How a text is read. CLASS takes an object as it is, or a text `module:name`.
        default: The parsed default; None when there is none.
        doc: What it does, in a sentence or two.
        validator: What a value must fulfil beyond its type.
        refused_because: When not empty, any value but the default is refused, for this reason.
    """

    name: str
    type: ConfigType
    default: Any
    doc: str
    validator: Validator | None = None
    refused_because: str = ""


COMMON_KEYS: Final = (
    ClientKey(
        "bootstrap.servers",
        _LIST,
        (),
        "Some brokers of the cluster as host:port, to find the others by. Required.",
        ListOf(may_be_empty=True),
    ),
    ClientKey("client.id", _TEXT, "", "The client's name for itself, seen in the broker's logs, metrics and quotas."),
    ClientKey(
        "client.dns.lookup",
        _TEXT,
        "use_all_dns_ips",
        "Whether all addresses of a broker's name are tried.",
        OneOf(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
        "every address of a name is tried in turn; canonical names serve Kerberos, which is not built",
    ),
    ClientKey("request.timeout.ms", _INT, 30_000, "How long one request may go without an answer.", AtLeast(0)),
    ClientKey("retry.backoff.ms", _LONG, 100, "The pause before the first repetition of a failed request.", AtLeast(0)),
    ClientKey("retry.backoff.max.ms", _LONG, 1_000, "Pauses double up to this.", AtLeast(0)),
    ClientKey("reconnect.backoff.ms", _LONG, 50, "The pause before connecting to a broker again.", AtLeast(0)),
    ClientKey(
        "reconnect.backoff.max.ms",
        _LONG,
        1_000,
        "These pauses double up to this; where reconnect.backoff.ms is set alone they stay as they are.",
        AtLeast(0),
    ),
    ClientKey("metadata.max.age.ms", _LONG, 300_000, "After this the cluster's metadata is asked again.", AtLeast(0)),
    ClientKey(
        "metadata.recovery.strategy",
        _TEXT,
        "rebootstrap",
        "What to do when no known broker is reachable: begin again from bootstrap.servers, or not.",
        OneOfAnyCase(("none", "rebootstrap")),
    ),
    ClientKey(
        "metadata.recovery.rebootstrap.trigger.ms",
        _LONG,
        300_000,
        "How long known brokers may be reachable and still give no metadata before that.",
        AtLeast(0),
    ),
    ClientKey("connections.max.idle.ms", _LONG, 540_000, "Connections idle for this long are closed.", AtLeast(-1)),
    ClientKey(
        "socket.connection.setup.timeout.ms", _LONG, 10_000, "How long one attempt to connect may take.", AtLeast(1)
    ),
    ClientKey(
        "socket.connection.setup.timeout.max.ms",
        _LONG,
        30_000,
        "That time doubles with each failure, up to this.",
        AtLeast(1),
    ),
    ClientKey("send.buffer.bytes", _INT, 131_072, "SO_SNDBUF; -1 leaves it to the system.", AtLeast(-1)),
    ClientKey("receive.buffer.bytes", _INT, 65_536, "SO_RCVBUF; -1 leaves it to the system.", AtLeast(-1)),
    ClientKey(
        "security.protocol",
        _TEXT,
        "PLAINTEXT",
        "PLAINTEXT, or SSL for TLS.",
        OneOfAnyCase(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    ),
    ClientKey("ssl.truststore.type", _TEXT, None, _STORE_TYPE_DOC, _STORE_TYPES),
    ClientKey("ssl.truststore.location", _TEXT, None, "File of trusted authorities; the system's without it."),
    ClientKey("ssl.truststore.password", _PASSWORD, None, "What a JKS or PKCS12 trust store is opened with."),
    ClientKey("ssl.truststore.certificates", _PASSWORD, None, "The same as PEM text."),
    ClientKey("ssl.keystore.type", _TEXT, None, _STORE_TYPE_DOC, _STORE_TYPES),
    ClientKey("ssl.keystore.location", _TEXT, None, "File of the client's key and certificate chain."),
    ClientKey("ssl.keystore.password", _PASSWORD, None, "What a JKS or PKCS12 key store is opened with."),
    ClientKey("ssl.keystore.certificate.chain", _PASSWORD, None, "The client's certificate chain as PEM text."),
    ClientKey("ssl.keystore.key", _PASSWORD, None, "The client's private key as PEM text."),
    ClientKey("ssl.key.password", _PASSWORD, None, "What the private key itself is encrypted with."),
    ClientKey(
        "ssl.endpoint.identification.algorithm",
        _TEXT,
        "https",
        "https checks that the certificate carries the broker's host name; empty does not.",
        OneOf(("https", "")),
    ),
    ClientKey(
        "ssl.enabled.protocols",
        _LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The versions of TLS.",
        ListOf(("TLSv1.2", "TLSv1.3"), may_be_empty=False),
    ),
    ClientKey(
        "enable.metrics.push",
        ConfigType.BOOLEAN,
        False,
        "Whether the client sends its metrics to the broker (KIP-714).",
        None,
        "client telemetry is not built yet",
    ),
)
"""What producers, consumers and admin clients share. `receive.buffer.bytes` of producers has another default."""

API_TIMEOUT_KEY: Final = ClientKey(
    "default.api.timeout.ms", _INT, 60_000, "How long a call may take in all, with its repetitions.", AtLeast(0)
)


def nearest_hint(name: str, known: Iterable[str]) -> str:
    """Say which known name was probably meant; may be empty."""
    import difflib  # on the way to an error only

    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"did you mean {nearest[0]!r}?" if nearest else ""


def read_values(
    given: Mapping[str, object], keys: tuple[ClientKey, ...], kind: str, refusals: Mapping[str, Refusal]
) -> dict[str, Any]:
    """Return every key's value, given or default, parsed and checked.

    Args:
        given: The user's settings.
        keys: What is read.
        kind: `producer`, `consumer` or `admin`, for errors.
        refusals: Kafka's other keys; given empty they are as if not given.

    Raises:
        ConfigError: A name is unknown, a value is none of its key, or the key is refused.
    """
    known = {key.name for key in keys}
    for name, raw in given.items():
        if name in known:
            continue
        refusal = refusals.get(name)
        if refusal is None:
            raise ConfigError(f"unknown {kind} setting {name!r}", hint=nearest_hint(str(name), [*known, *refusals]))
        is_empty = raw is None or (isinstance(raw, str | list | tuple) and not raw)
        if not is_empty:
            raise ConfigError(f"{name} is refused: {refusal.reason}", hint=refusal.instead)
    values: dict[str, Any] = {}
    for key in keys:
        raw = given.get(key.name)
        value = key.default if raw is None else _read(key, raw)
        if key.refused_because and value != key.default:
            raise ConfigError(f"{key.name} is refused: {key.refused_because}")
        values[key.name] = value
    return values


def _read(key: ClientKey, raw: object) -> Any:
    if key.type is ConfigType.CLASS:
        return load_object(key.name, raw) if isinstance(raw, str) and ":" in raw else raw
    if key.type is ConfigType.LIST and isinstance(raw, list | tuple):
        return tuple(_as_interceptor(key.name, item) if key.name == _INTERCEPTORS else item for item in raw)
    try:
        value = parse(key.name, _text(raw), key.type)
        if key.validator is not None:
            key.validator.check(key.name, value)
    except InvalidValueError as error:
        raise ConfigError(str(error)) from None
    if key.name == _INTERCEPTORS and isinstance(value, tuple):
        return tuple(load_object(key.name, item) for item in value)
    return value


def _as_interceptor(name: str, given: object) -> object:
    if isinstance(given, str):
        return load_object(name, given)
    return given() if isinstance(given, type) else given


def _text(raw: object) -> str:
    if isinstance(raw, bool | int | float):
        return render(raw) or ""
    return str(raw)


def load_object(name: str, path: object) -> Any:
    """Import what `module:attribute` names; a class is instantiated without arguments.

    Raises:
        ConfigError: There is no such thing.
    """
    module_name, _, attribute = str(path).partition(":")
    try:
        found = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{name}: cannot import {path!r}: {error}", hint="write it as module:name") from None
    return found() if isinstance(found, type) else found


def read_bootstrap(entries: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Return `bootstrap.servers` as hosts and ports; IPv6 addresses stand in brackets.

    Raises:
        ConfigError: There is none, or one is not host:port.
    """
    if not entries:
        raise ConfigError("bootstrap.servers is missing", hint="for instance 127.0.0.1:9092")
    found = []
    for entry in entries:
        host, _, port = entry.rpartition("://")[2].rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isdigit() or not 0 < int(port) < 65_536:
            raise ConfigError(f"bootstrap.servers: {entry!r} is not host:port")
        found.append((host, int(port)))
    return tuple(found)


def connection_settings(
    given: Mapping[str, object], values: Mapping[str, Any], default_client_id: str
) -> ConnectionSettings:
    """Return how brokers are reached, from parsed values.

    Args:
        given: The user's settings.
        values: Every key's value, given or default.
        default_client_id: For who gave no `client.id`.

    Raises:
        ConfigError: `bootstrap.servers` or `security.protocol` cannot be used.
    """
    # As in Java: who sets the first pause alone wants it, however long, and not the default of the longest.
    is_constant = given.get("reconnect.backoff.ms") is not None and given.get("reconnect.backoff.max.ms") is None
    protocol = values["security.protocol"].upper()
    if protocol.startswith("SASL"):
        raise ConfigError(f"security.protocol={protocol} is refused: {SASL.reason}", hint=SASL.instead)
    return ConnectionSettings(
        bootstrap=read_bootstrap(values["bootstrap.servers"]),
        client_id=values["client.id"] or default_client_id,
        request_timeout_ms=values["request.timeout.ms"],
        retry_backoff_ms=values["retry.backoff.ms"],
        retry_backoff_max_ms=values["retry.backoff.max.ms"],
        reconnect_backoff_ms=values["reconnect.backoff.ms"],
        reconnect_backoff_max_ms=values["reconnect.backoff.ms" if is_constant else "reconnect.backoff.max.ms"],
        metadata_max_age_ms=values["metadata.max.age.ms"],
        rebootstraps=values["metadata.recovery.strategy"].lower() == "rebootstrap",
        rebootstrap_trigger_ms=values["metadata.recovery.rebootstrap.trigger.ms"],
        connections_max_idle_ms=values["connections.max.idle.ms"],
        setup_timeout_ms=values["socket.connection.setup.timeout.ms"],
        setup_timeout_max_ms=values["socket.connection.setup.timeout.max.ms"],
        send_buffer_bytes=values["send.buffer.bytes"],
        receive_buffer_bytes=values["receive.buffer.bytes"],
        tls=tls_settings(values) if protocol == "SSL" else None,
    )


def tls_settings(values: Mapping[str, Any]) -> TlsClientSettings:
    """Return how TLS is spoken, from parsed values."""
    return TlsClientSettings(
        truststore_type=values["ssl.truststore.type"],
        truststore_location=values["ssl.truststore.location"],
        truststore_password=values["ssl.truststore.password"],
        truststore_certificates=values["ssl.truststore.certificates"],
        keystore_type=values["ssl.keystore.type"],
        keystore_location=values["ssl.keystore.location"],
        keystore_password=values["ssl.keystore.password"],
        keystore_certificate_chain=values["ssl.keystore.certificate.chain"],
        keystore_key=values["ssl.keystore.key"],
        key_password=values["ssl.key.password"],
        is_host_checked=values["ssl.endpoint.identification.algorithm"] == "https",
        enabled_protocols=tuple(values["ssl.enabled.protocols"]),
    )


def check_methods(name: str, objects: Iterable[object], *methods: str) -> None:
    """See that each object has one of the methods at least: a misspelt one would be passed over in silence.

    Raises:
        ConfigError: One has none.
    """
    for given in objects:
        if not any(callable(getattr(given, method, None)) for method in methods):
            raise ConfigError(f"{name}: {given!r} has no method {' or '.join(methods)}")


def as_serializer(name: str, given: object, method: str) -> Callable[[str, Any], Any] | None:
    """Return `(topic, value)` as a plain call, from what a user gave as serializer or deserializer.

    Args:
        name: The setting, for errors.
        given: None, an object with `method` taking topic and value (or its class), or a callable of the value alone.
        method: `serialize` or `deserialize`.

    Raises:
        ConfigError: It is neither.
    """
    if given is None:
        return None
    has_method = hasattr(given, method)
    bound = getattr(given() if has_method and isinstance(given, type) else given, method, None)
    if bound is not None:
        found: Callable[[str, Any], Any] = bound
        return found
    if not callable(given):
        raise ConfigError(f"{name}: {given!r} is neither callable nor has it a method {method!r}")
    plain: Callable[[Any], Any] = given
    return lambda _, value: plain(value)
