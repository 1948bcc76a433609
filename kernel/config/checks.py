"""Pure core: what keys of a broker must fulfil together; checked at the start and before a dynamic change.

*Source:* Kafka 4.3 `KafkaConfig.validateValues` and what a running broker answers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from ..errors import ConfigError
from .definitions.odradek import TIERED
from .listeners import (
    check_keys_of_one_listener,
    connection_limits_by_host,
    parse_controller_listeners,
    parse_listeners,
)
from .roles import check_roles
from .tier_checks import wrong_local_retention

if TYPE_CHECKING:
    from .broker import BrokerConfig

_COMPACTION_MEMORY_MIN: Final = 1 << 20  # bytes of each thread; Kafka refuses exactly as many, too


def check_together(config: BrokerConfig) -> None:
    """Check all rules that bind several keys.

    Raises:
        ConfigError: A rule does not hold.
    """
    for check in _CHECKS:
        check(config)


def _check_retention(config: BrokerConfig) -> None:
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if config.value(name) == 0:
            what = f"{name} must be unlimited (-1) or, greater than or equal to 1"
            raise ConfigError(what, where=config.where(name))


def _check_rolling(config: BrokerConfig) -> None:
    for name, least in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
        value = config.value(name)
        if isinstance(value, int) and value < least:
            raise ConfigError(f"{name} must be greater than or equal to {least}", where=config.where(name))


def _check_compaction_lag(config: BrokerConfig) -> None:
    low, high = (config.get_int(f"log.cleaner.{word}.compaction.lag.ms") for word in ("min", "max"))
    if low > high:
        what = f"log.cleaner.min.compaction.lag.ms ({low}) > log.cleaner.max.compaction.lag.ms ({high})"
        raise ConfigError(what, where=config.where("log.cleaner.min.compaction.lag.ms"))


def _check_compaction_memory(config: BrokerConfig) -> None:
    threads, memory = config.get_int("log.cleaner.threads"), config.get_int("log.cleaner.dedupe.buffer.size")
    if threads < 1:
        raise ConfigError(
            "log.cleaner.threads must be greater than or equal to 1",
            where=config.where("log.cleaner.threads"),
            hint="log.cleaner.enable=false turns compaction off",
        )
    if memory // threads <= _COMPACTION_MEMORY_MIN:
        what = "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread"
        raise ConfigError(what, where=_where_of_both(config, "log.cleaner.dedupe.buffer.size", "log.cleaner.threads"))


def _check_compaction_load(config: BrokerConfig) -> None:
    key = "log.cleaner.io.buffer.load.factor"
    if not 0 < config.get_float(key) <= 1:  # nor not-a-number; Kafka takes any, and then compacts nothing
        raise ConfigError(f"{key} must be above 0, and 1 at most", where=config.where(key), hint="0.9")


def _check_request_memory(config: BrokerConfig) -> None:
    memory, largest = config.get_int("queued.max.request.bytes"), config.get_int("socket.request.max.bytes")
    if 0 < memory < largest or memory == 0:
        what = f"queued.max.request.bytes must be -1 or at least socket.request.max.bytes ({largest}), not {memory}"
        raise ConfigError(what, where=config.where("queued.max.request.bytes"))


def _check_idle_connections(config: BrokerConfig) -> None:
    delay, idle = "connection.failed.authentication.delay.ms", "connections.max.idle.ms"
    if 0 <= config.get_int(idle) <= config.get_int(delay):
        what = f"{delay}={config.get_int(delay)} should always be less than {idle}={config.get_int(idle)}"
        raise ConfigError(what, where=_where_of_both(config, idle, delay), hint=f"{idle}=-1 closes none")


def _check_connection_limits(config: BrokerConfig) -> None:
    overrides = connection_limits_by_host(config)
    if config.get_int("max.connections.per.ip") == 0 and not overrides:
        what = "max.connections.per.ip can be 0 only where max.connections.per.ip.overrides lets somebody in"
        raise ConfigError(what, where=config.where("max.connections.per.ip"))


def _check_offsets_compression(config: BrokerConfig) -> None:
    codec = config.get_int("offsets.topic.compression.codec")
    if codec not in range(5):
        raise ConfigError(
            f"Unknown compression type id: {codec}",
            where=config.where("offsets.topic.compression.codec"),
            hint="0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd",
        )


_HOLDS: Final[dict[str, Callable[[int, int], bool]]] = {
    "greater than or equal to": operator.ge,
    "less than or equal to": operator.le,
    "less than": operator.lt,
}
_LIMITED: Final = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")


def _consumer_group_rules() -> Iterator[tuple[str, str, str]]:
    prefix = "group.consumer"
    for rest in _LIMITED:
        yield f"{prefix}.max.{rest}", "greater than or equal to", f"{prefix}.min.{rest}"
        yield f"{prefix}.{rest}", "greater than or equal to", f"{prefix}.min.{rest}"
        yield f"{prefix}.{rest}", "less than or equal to", f"{prefix}.max.{rest}"
    yield f"{prefix}.heartbeat.interval.ms", "less than", f"{prefix}.session.timeout.ms"


def _check_consumer_groups(config: BrokerConfig) -> None:
    for name, words, other in _consumer_group_rules():
        value, bound = config.get_int(name), config.get_int(other)
        if not _HOLDS[words](value, bound):
            what = f"{name} must be {words} {other}"
            raise ConfigError(what, where=_where_of_both(config, name, other), hint=f"they are {value} and {bound}")


def _where_of_both(config: BrokerConfig, name: str, other: str) -> str:
    """Return where the first of two keys that is set was set."""
    return config.where(name) or config.where(other)


def _check_tiers(config: BrokerConfig) -> None:
    if config.get_text("odradek.storage") == TIERED and not config.get_bool("remote.log.storage.system.enable"):
        raise ConfigError(
            f"odradek.storage={TIERED} needs tiered storage, which is off",
            where=config.where("odradek.storage"),
            hint="remote.log.storage.system.enable=true",
        )


def _check_local_retention(config: BrokerConfig) -> None:
    if not config.get_bool("remote.log.storage.system.enable"):
        return
    total_ms = config.first_of(config.key("log.retention.ms").synonyms)
    assert isinstance(total_ms, int), "log.retention.hours has a default"
    for name, total in (("retention.ms", total_ms), ("retention.bytes", config.get_int("log.retention.bytes"))):
        wrong = wrong_local_retention(f"log.local.{name}", config.get_int(f"log.local.{name}"), f"log.{name}", total)
        if wrong:
            raise ConfigError(wrong, where=config.where(f"log.local.{name}"))


def _check_heartbeats(config: BrokerConfig) -> None:
    interval, session = "broker.heartbeat.interval.ms", "broker.session.timeout.ms"
    if config.get_int(interval) * 2 > config.get_int(session):
        what = f"{interval} ({config.get_int(interval)}) must be less than or equal to half of {session}"
        hint = f"it is {config.get_int(session)}"
        raise ConfigError(what, where=_where_of_both(config, interval, session), hint=hint)


def _check_listeners(config: BrokerConfig) -> None:
    parse_listeners(config)
    parse_controller_listeners(config)
    check_keys_of_one_listener(config)


_CHECKS: Final[tuple[Callable[[BrokerConfig], None], ...]] = (
    check_roles,
    _check_heartbeats,
    _check_retention,
    _check_rolling,
    _check_compaction_lag,
    _check_compaction_memory,
    _check_compaction_load,
    _check_request_memory,
    _check_idle_connections,
    _check_connection_limits,
    _check_offsets_compression,
    _check_consumer_groups,
    _check_tiers,
    _check_local_retention,
    _check_listeners,
)
