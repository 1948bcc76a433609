"""Pure core: the client's settings: Kafka's keys, read into numbers, and what pickles and compares of them.

    settings = ClientSettings.of({"bootstrap.servers": "a:9092", "security.protocol": "SSL"})

A value is frozen, can be pickled to workers, and serves as the key of the clients that a process keeps. It holds
passwords, and prints none of them.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.peers.settings import TlsClientSettings

FETCH_BYTES: Final = 4 * 1024 * 1024
"""What one fetch asks for unless `max.partition.fetch.bytes` says otherwise: a round trip costs little beside it."""


@attrs.frozen(kw_only=True, repr=False)
class SaslSettings:
    """How the client shows who it is; kept out of reprs, since it holds secrets.

    Attributes:
        mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.
        username: For PLAIN and SCRAM.
        password: For PLAIN and SCRAM.
        token: For OAUTHBEARER: the token itself; or
        token_path: a file that holds it, read at each login; or
        claims: what an unsecured token claims, for brokers of developers.
        token_life_s: How long an unsecured token lasts.
        extensions: For OAUTHBEARER (KIP-342), and `tokenauth` for SCRAM.
    """

    mechanism: str
    username: str = ""
    password: str = ""
    token: str | None = None
    token_path: str | None = None
    claims: tuple[tuple[str, str | float], ...] = ()
    token_life_s: int = 3_600
    extensions: tuple[tuple[str, str], ...] = ()


@attrs.frozen(kw_only=True)
class ClientSettings:
    """What the client needs to know; times in milliseconds, sizes in bytes.

    Attributes:
        bootstrap: Hosts and ports to begin with.
        client_id: Seen in brokers' logs, metrics and quotas.
        rack: Where this client stands (`client.rack`); brokers may then name a nearer replica to fetch from.
        api_timeout_ms: How long one call may take with its repetitions.
        request_timeout_ms: How long one request may go without an answer.
        setup_timeout_ms: How long one attempt to connect may take.
        retry_backoff_ms: The first pause between attempts.
        retry_backoff_max_ms: What pauses grow to.
        metadata_max_age_ms: After this the cluster's metadata is asked again.
        connections_max_idle_ms: A connection idle for longer is not used again; -1 for ever.
        send_buffer_bytes: SO_SNDBUF, -1 for the system's.
        receive_buffer_bytes: SO_RCVBUF, -1 for the system's.
        fetch_bytes: What one fetch asks for.
        fetch_bytes_max: The most that one answer to it may hold, but for a large first batch.
        fetch_min_bytes: What a broker waits for.
        fetch_wait_ms: How long it waits.
        is_read_committed: `isolation.level`.
        checks_crcs: `check.crcs`.
        tls: None without TLS.
        sasl: None without SASL.
        given: The keys as they were given, sorted; a writer reads its own from here.
    """

    bootstrap: tuple[tuple[str, int], ...]
    client_id: str = "odradek-spark"
    rack: str = ""
    api_timeout_ms: int = 60_000
    request_timeout_ms: int = 30_000
    setup_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    connections_max_idle_ms: int = 540_000
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    fetch_bytes: int = FETCH_BYTES
    fetch_bytes_max: int = 52_428_800
    fetch_min_bytes: int = 1
    fetch_wait_ms: int = 500
    is_read_committed: bool = False
    checks_crcs: bool = True
    tls: TlsClientSettings | None = attrs.field(default=None, repr=False)
    sasl: SaslSettings | None = attrs.field(default=None, repr=False)
    given: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)

    @classmethod
    def of(cls, options: Mapping[str, object]) -> ClientSettings:
        """Read Kafka's keys; those without a meaning here are let pass (`setting_keys.unknown_keys` names strangers).

        Args:
            options: Kafka's keys, without the prefix `kafka.`, in any case of letters.

        Raises:
            ConfigError: A value is none of its key, or the settings contradict each other.
        """
        from .setting_keys import read_settings  # the tables are needed where settings are made, not in workers

        return read_settings(options)

    def __str__(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.bootstrap)
