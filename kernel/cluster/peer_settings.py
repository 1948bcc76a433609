"""Shell: how a node reaches others of its cluster: times, and TLS where their listener speaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..config.listeners import SSL, controller_protocol, parse_listeners
from ..peers.settings import ConnectionSettings, TlsClientSettings

if TYPE_CHECKING:
    import ssl

    from ..config.broker import BrokerConfig


QUORUM_REQUEST_TIMEOUT: Final = "controller.quorum.request.timeout.ms"


def peer_settings(config: BrokerConfig) -> ConnectionSettings:
    """Return the settings of connections to other nodes."""
    return ConnectionSettings(
        bootstrap=(),
        client_id=f"broker-{config.node_id}",
        request_timeout_ms=config.get_int("request.timeout.ms"),
        retry_backoff_ms=config.get_int("controller.quorum.retry.backoff.ms"),
        send_buffer_bytes=-1,
        receive_buffer_bytes=-1,
    )


def quorum_settings(config: BrokerConfig) -> ConnectionSettings:
    """Return the settings of connections to controllers: who is not there is not waited for as long as brokers are."""
    return attrs.evolve(peer_settings(config), setup_timeout_ms=config.get_int(QUORUM_REQUEST_TIMEOUT))


def controller_tls(config: BrokerConfig) -> ssl.SSLContext | None:
    """Return how the controller is spoken to; None in the clear.

    Raises:
        ConfigError: A store cannot be used.
    """
    name = config.get_list("controller.listener.names")[0].upper()
    return _context(config, name) if controller_protocol(config, name) == SSL else None


def listener_tls(config: BrokerConfig, name: str) -> ssl.SSLContext | None:
    """Return how a listener of this name of another broker is spoken to; None in the clear.

    Raises:
        ConfigError: A store cannot be used.
    """
    protocols = {listener.name: listener.security_protocol for listener in parse_listeners(config)}
    return _context(config, name) if protocols.get(name) == SSL else None


def _context(config: BrokerConfig, listener: str) -> ssl.SSLContext:
    from ..peers.tls import client_context  # only where TLS is spoken

    def name(key: str) -> str:
        own = f"listener.name.{listener.lower()}.{key}"
        return own if config.is_set(own) else key

    def text(key: str) -> str | None:
        return config.get_text(name(key)) or None

    def text_if_set(key: str) -> str | None:
        return text(key) if config.is_set(name(key)) else None

    return client_context(
        TlsClientSettings(
            truststore_type=text_if_set("ssl.truststore.type"),
            truststore_location=text("ssl.truststore.location"),
            truststore_password=text("ssl.truststore.password"),
            truststore_certificates=text("ssl.truststore.certificates"),
            keystore_type=text_if_set("ssl.keystore.type"),
            keystore_location=text("ssl.keystore.location"),
            keystore_password=text("ssl.keystore.password"),
            keystore_certificate_chain=text("ssl.keystore.certificate.chain"),
            keystore_key=text("ssl.keystore.key"),
            key_password=text("ssl.key.password"),
            is_host_checked=bool(text("ssl.endpoint.identification.algorithm")),
            enabled_protocols=config.get_list(name("ssl.enabled.protocols")),
        )
    )
