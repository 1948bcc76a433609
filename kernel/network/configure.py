"""Pure core: the network's settings, taken from the broker's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..config.listeners import (
    connection_limits_by_host,
    inter_broker_listener,
    parse_controller_listeners,
    parse_listeners,
)
from .settings import ClientAuth, ListenerSettings, LoopKind, NetworkSettings, SecurityProtocol, TlsSettings

if TYPE_CHECKING:
    from ..config.broker import BrokerConfig


def network_settings(config: BrokerConfig) -> NetworkSettings:
    """Return the settings of all listeners.

    Raises:
        ConfigError: The keys of listeners contradict each other.
    """
    request_memory_bytes = config.get_int("queued.max.request.bytes")
    if request_memory_bytes <= 0:
        request_memory_bytes = config.get_int("odradek.network.memory.bytes")
    controllers = parse_controller_listeners(config)
    listeners = parse_listeners(config)
    protected = inter_broker_listener(config) if len(listeners) > 1 else None
    return NetworkSettings(
        listeners=tuple(
            ListenerSettings(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=SecurityProtocol(listener.security_protocol),
                tls=_tls(config, listener.name) if listener.security_protocol == "SSL" else None,
                goes_first=listener in controllers,
                is_protected=listener.name == protected,
            )
            for listener in (*listeners, *controllers)
        ),
        loop=LoopKind(config.get_text("odradek.network.loop")),
        connections_max=config.get_int("max.connections"),
        connections_per_ip_max=config.get_int("max.connections.per.ip"),
        connections_per_ip_overrides=connection_limits_by_host(config),
        connections_idle_ms_max=config.get_int("connections.max.idle.ms"),
        request_limit_bytes=config.get_int("socket.request.max.bytes"),
        request_memory_bytes=request_memory_bytes,
        receive_buffer_bytes=_buffer_bytes(config, "socket.receive.buffer.bytes"),
        send_buffer_bytes=_buffer_bytes(config, "socket.send.buffer.bytes"),
        backlog=config.get_int("socket.listen.backlog.size"),
        drain_timeout_ms=config.get_int("odradek.shutdown.timeout.ms"),
    )


def _buffer_bytes(config: BrokerConfig, key: str) -> int:
    """Return what the operator set; else -1, the system's own choice: Kafka's default, fixed, halves large requests."""
    return config.get_int(key) if config.is_set(key) else -1


def _tls(config: BrokerConfig, listener_name: str) -> TlsSettings:
    def name(key: str) -> str:
        """Return the key of this listener where it is set, or else that of all."""
        own = f"listener.name.{listener_name.lower()}.{key}"
        return own if config.is_set(own) else key

    def value(key: str) -> str:
        return config.get_text(name(key))

    def value_if_set(key: str) -> str | None:
        return value(key) if config.is_set(name(key)) else None

    return TlsSettings(
        keystore_type=value_if_set("ssl.keystore.type"),
        keystore_location=value("ssl.keystore.location") or None,
        keystore_password=value("ssl.keystore.password") or None,
        keystore_certificate_chain=value("ssl.keystore.certificate.chain") or None,
        keystore_key=value("ssl.keystore.key") or None,
        key_password=value("ssl.key.password") or None,
        truststore_type=value_if_set("ssl.truststore.type"),
        truststore_location=value("ssl.truststore.location") or None,
        truststore_password=value("ssl.truststore.password") or None,
        truststore_certificates=value("ssl.truststore.certificates") or None,
        client_auth=ClientAuth(value("ssl.client.auth")),
        enabled_protocols=config.get_list(name("ssl.enabled.protocols")),
    )
