"""Pure core: which of Kafka's client keys have an effect here, which are known and have none, and what values mean.

A job that ran with the JVM connector brings keys of Kafka's Java clients along. Those that this client has are read and
checked; the others of Kafka's own pass without effect, so that the job runs; a name that Kafka does not have either is
probably a slip, and whoever reads options warns of it (`unknown_keys`).

*Source:* `ConsumerConfig`, `ProducerConfig`, `AdminClientConfig`, `SslConfigs`, `SaslConfigs` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.client.consumer_settings import ADMIN_KEYS, CONSUMER_KEYS
from odradek.client.producer_settings import PRODUCER_KEYS
from odradek.client.refused_keys import CONSUMER_REFUSALS
from odradek.client.settings import nearest_hint, read_bootstrap, read_values, tls_settings
from odradek.kernel.errors import ConfigError

from .jaas import read_sasl
from .settings import FETCH_BYTES, ClientSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.client.settings import ClientKey

_ROWS: Final = {key.name: key for key in CONSUMER_KEYS}


def _text(name: str, default: str | None, doc: str, template: str = "client.id") -> ClientKey:
    return attrs.evolve(_ROWS[template], name=name, default=default, doc=doc)


_PASSWORD: Final = "ssl.key.password"  # the name of a key, whose type is wanted
_SAME: Final = (
    "bootstrap.servers",
    "client.id",
    "client.rack",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "metadata.max.age.ms",
    "connections.max.idle.ms",
    "socket.connection.setup.timeout.ms",
    "security.protocol",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "ssl.enabled.protocols",
    "fetch.min.bytes",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "isolation.level",
    "check.crcs",
)

EFFECTIVE_KEYS: Final[tuple[ClientKey, ...]] = (
    *(_ROWS[name] for name in _SAME),
    attrs.evolve(_ROWS["max.partition.fetch.bytes"], default=FETCH_BYTES),
    attrs.evolve(_ROWS["send.buffer.bytes"], default=-1),
    attrs.evolve(_ROWS["receive.buffer.bytes"], default=-1),
    _text("sasl.mechanism", "GSSAPI", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."),
    _text("sasl.jaas.config", None, "The credentials, as a login module of Kafka.", _PASSWORD),
    _text("sasl.username", None, "The user, in place of a JAAS line.", "ssl.keystore.location"),
    _text("sasl.password", None, "The user's password.", _PASSWORD),
    _text("sasl.oauthbearer.token", None, "The token itself.", _PASSWORD),
    _text("sasl.oauthbearer.token.endpoint.url", None, "file:///... names a file with the token.", _PASSWORD),
)
"""What this client reads; `max.partition.fetch.bytes` and the sizes of socket buffers have defaults of their own."""

KNOWN_NAMES: Final[frozenset[str]] = frozenset(
    {key.name for key in (*EFFECTIVE_KEYS, *CONSUMER_KEYS, *PRODUCER_KEYS, *ADMIN_KEYS)}
    | set(CONSUMER_REFUSALS)
    | {"auto.include.jmx.reporter"}
)
"""Every key that a client of Kafka has, and the one that its clients before 4.0 had."""


def unknown_keys(names: Iterable[str]) -> dict[str, str]:
    """Return the names that no client of Kafka has, each with the name that was probably meant, as a question or empty.

    Args:
        names: Keys without the prefix `kafka.`.
    """
    return {name: nearest_hint(name.lower(), KNOWN_NAMES) for name in names if name.lower() not in KNOWN_NAMES}


def read_settings(options: Mapping[str, object]) -> ClientSettings:
    """Do as `ClientSettings.of`.

    Raises:
        ConfigError: As there.
    """
    given = {name.lower(): value for name, value in options.items() if value is not None}
    effective = {key.name for key in EFFECTIVE_KEYS}
    values = read_values(
        {name: value for name, value in given.items() if name in effective}, EFFECTIVE_KEYS, "kafka", {}
    )
    defaults = ClientSettings(bootstrap=read_bootstrap(values["bootstrap.servers"]))
    protocol: str = values["security.protocol"]
    level = str(values["isolation.level"])
    if level not in {"read_committed", "read_uncommitted"}:
        raise ConfigError(f"isolation.level: {level!r} is neither read_committed nor read_uncommitted")
    return attrs.evolve(
        defaults,
        client_id=values["client.id"] or defaults.client_id,
        rack=values["client.rack"] or "",
        api_timeout_ms=values["default.api.timeout.ms"],
        request_timeout_ms=values["request.timeout.ms"],
        setup_timeout_ms=values["socket.connection.setup.timeout.ms"],
        retry_backoff_ms=values["retry.backoff.ms"],
        retry_backoff_max_ms=values["retry.backoff.max.ms"],
        metadata_max_age_ms=values["metadata.max.age.ms"],
        connections_max_idle_ms=values["connections.max.idle.ms"],
        send_buffer_bytes=values["send.buffer.bytes"],
        receive_buffer_bytes=values["receive.buffer.bytes"],
        fetch_bytes=max(values["max.partition.fetch.bytes"], 1),
        fetch_bytes_max=max(values["fetch.max.bytes"], 1),
        fetch_min_bytes=max(values["fetch.min.bytes"], 1),  # 0 would be a busy loop
        fetch_wait_ms=values["fetch.max.wait.ms"],
        is_read_committed=level == "read_committed",
        checks_crcs=values["check.crcs"],
        tls=tls_settings(values) if protocol.endswith("SSL") else None,
        sasl=read_sasl(values) if protocol.startswith("SASL") else None,
        given=tuple(sorted((name, str(value)) for name, value in given.items())),
    )
