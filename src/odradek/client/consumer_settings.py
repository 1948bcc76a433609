"""Pure core: the settings of consumers, alone or in groups, and of admin clients.

*Source:* Kafka 4.3 `ConsumerConfig`, `AdminClientConfig`; KIP-1106 (`by_duration`).

.. versionadded:: 0.1
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.config.values import AtLeast, Between, ConfigType, InvalidValueError, NotEmpty, OneOf, OneOfAnyCase
from odradek.kernel.errors import ConfigError
from odradek.kernel.peers.settings import ConnectionSettings
from odradek.kernel.types import IsolationLevel

from .group.member import GroupSettings
from .refused_keys import COMMON_REFUSALS, CONSUMER_REFUSALS
from .settings import (
    API_TIMEOUT_KEY,
    COMMON_KEYS,
    INT_MAX,
    ClientKey,
    as_serializer,
    check_methods,
    connection_settings,
    read_values,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.kernel.config.values import Value

_INT: Final = ConfigType.INT
_BOOLEAN: Final = ConfigType.BOOLEAN
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?"
)
_BY_DURATION: Final = "by_duration:"


class _ResetStrategy:
    """Accepts what `auto.offset.reset` may be."""

    def check(self, name: str, value: Value) -> None:
        """Refuse any other text."""
        text = str(value)
        if text in {"earliest", "latest", "none"}:
            return
        if not text.startswith(_BY_DURATION) or duration_ms(text.removeprefix(_BY_DURATION)) is None:
            raise InvalidValueError.of(name, value, "expected earliest, latest, none or by_duration:<ISO-8601>")

    def describe(self) -> str:
        """Say what is valid."""
        return "[earliest, latest, none, by_duration:PnDTnHnMn.nS]"


def duration_ms(text: str) -> int | None:
    """Return an ISO-8601 duration of days and smaller, such as `P1DT2H`, in milliseconds; None if it is none."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000)


_GROUP_KEYS: Final = (
    ClientKey("group.id", ConfigType.STRING, None, "The consumer group; without one there is nothing to commit."),
    ClientKey(
        "group.instance.id",
        ConfigType.STRING,
        None,
        "Names a static member, which keeps its partitions over a restart shorter than session.timeout.ms.",
        NotEmpty(),
    ),
    ClientKey(
        "group.protocol",
        ConfigType.STRING,
        "classic",
        "classic, where a member assigns; or consumer, where the broker does (KIP-848).",
        OneOfAnyCase(("classic", "consumer")),
    ),
    ClientKey("group.remote.assignor", ConfigType.STRING, None, "The broker's assignor (consumer protocol only)."),
    ClientKey(
        "partition.assignment.strategy",
        ConfigType.LIST,
        (),
        "The assignors of the classic protocol, best first: names that plugins offer, Kafka's class names, objects or "
        "module:name. Without it range and cooperative-sticky.",
    ),
    ClientKey(
        "session.timeout.ms", _INT, 45_000, "When a silent member is dropped (classic protocol only).", AtLeast(1)
    ),
    ClientKey(
        "heartbeat.interval.ms", _INT, 3_000, "How often a member shows itself (classic protocol only).", AtLeast(1)
    ),
    ClientKey(
        "max.poll.interval.ms",
        _INT,
        300_000,
        "How long a member may go without a poll before it leaves; so long do others wait for it to rejoin.",
        AtLeast(1),
    ),
    ClientKey(
        "enable.auto.commit",
        _BOOLEAN,
        True,
        "Whether polls commit what the polls before returned; without group.id there is nothing to commit.",
    ),
    ClientKey("auto.commit.interval.ms", _INT, 5_000, "How often they do.", AtLeast(0)),
    ClientKey(
        "exclude.internal.topics", _BOOLEAN, True, "Whether patterns that are matched here skip internal topics."
    ),
)
_CLASSIC_ONLY: Final = ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms")

CONSUMER_KEYS: Final = (
    *COMMON_KEYS,
    API_TIMEOUT_KEY,
    ClientKey(
        "key.deserializer",
        ConfigType.CLASS,
        None,
        "Makes keys of bytes: an object with deserialize(topic, data), a callable of the bytes, or module:name.",
    ),
    ClientKey("value.deserializer", ConfigType.CLASS, None, "The same for values."),
    ClientKey("fetch.min.bytes", _INT, 1, "A broker waits until it has so much to answer with.", AtLeast(0)),
    ClientKey(
        "fetch.max.bytes", _INT, 52_428_800, "The most that one fetch brings, but for a large first batch.", AtLeast(0)
    ),
    ClientKey("fetch.max.wait.ms", _INT, 500, "How long a broker waits for fetch.min.bytes.", AtLeast(0)),
    ClientKey("max.partition.fetch.bytes", _INT, 1_048_576, "The same per partition.", AtLeast(0)),
    ClientKey("max.poll.records", _INT, 500, "How many records one poll returns at most.", AtLeast(1)),
    ClientKey(
        "auto.offset.reset",
        ConfigType.STRING,
        "latest",
        "Where to begin where there is no position, or one that the log no longer has.",
        _ResetStrategy(),
    ),
    ClientKey(
        "isolation.level",
        ConfigType.STRING,
        "read_uncommitted",
        "Whether records of open and aborted transactions are seen.",
        OneOf(("read_committed", "read_uncommitted")),
    ),
    ClientKey("check.crcs", _BOOLEAN, True, "Whether the checksum of each batch is verified."),
    ClientKey(
        "allow.auto.create.topics", _BOOLEAN, True, "Whether asking for an unknown topic may make the broker create it."
    ),
    ClientKey("client.rack", ConfigType.STRING, "", "Where the client is, so that it may read from a near replica."),
    ClientKey("interceptor.classes", ConfigType.LIST, (), "Objects with on_consume."),
    *_GROUP_KEYS,
)

ADMIN_KEYS: Final = (
    *(attrs.evolve(key, default=300_000) if key.name == "connections.max.idle.ms" else key for key in COMMON_KEYS),
    API_TIMEOUT_KEY,
    ClientKey("retries", _INT, INT_MAX, "How often a call is repeated after a retriable error.", Between(0, INT_MAX)),
    ClientKey(
        "bootstrap.controllers",
        ConfigType.LIST,
        (),
        "Controllers to talk to directly.",
        None,
        "brokers answer everything here; use bootstrap.servers",
    ),
)


@attrs.frozen(kw_only=True)
class ConsumerSettings:
    """A consumer's settings, read and checked; times in milliseconds, sizes in bytes.

    Attributes:
        connection: What every client has.
        reset: `earliest`, `latest`, `none` or `by_duration`.
        reset_duration_ms: How far back, for the last.
        group: What there is about a group; None without `group.id`.
        fetch_bytes_max: Of one answer.
        partition_fetch_bytes_max: Of one partition in it.
    """

    connection: ConnectionSettings
    api_timeout_ms: int
    key_deserializer: Callable[[str, Any], Any] | None
    value_deserializer: Callable[[str, Any], Any] | None
    fetch_min_bytes: int
    fetch_bytes_max: int
    fetch_wait_ms_max: int
    partition_fetch_bytes_max: int
    poll_records_max: int
    reset: str
    reset_duration_ms: int
    isolation_level: IsolationLevel
    checks_crcs: bool
    allows_topic_creation: bool
    rack: str
    interceptors: tuple[Any, ...]
    group: GroupSettings | None

    @classmethod
    def read(cls, given: Mapping[str, object]) -> ConsumerSettings:
        """Read Kafka's keys.

        Raises:
            ConfigError: A key is unknown or unbuilt, a value wrong, or two values contradict each other.
        """
        values = read_values(given, CONSUMER_KEYS, "consumer", CONSUMER_REFUSALS)
        strategy, _, duration = values["auto.offset.reset"].partition(":")
        check_methods("interceptor.classes", values["interceptor.classes"], "on_consume")
        is_committed = values["isolation.level"] == "read_committed"
        return cls(
            connection=connection_settings(given, values, "odradek-consumer"),
            api_timeout_ms=values["default.api.timeout.ms"],
            key_deserializer=as_serializer("key.deserializer", values["key.deserializer"], "deserialize"),
            value_deserializer=as_serializer("value.deserializer", values["value.deserializer"], "deserialize"),
            fetch_min_bytes=values["fetch.min.bytes"],
            fetch_bytes_max=values["fetch.max.bytes"],
            fetch_wait_ms_max=values["fetch.max.wait.ms"],
            partition_fetch_bytes_max=values["max.partition.fetch.bytes"],
            poll_records_max=values["max.poll.records"],
            reset=strategy,
            reset_duration_ms=duration_ms(duration) or 0,
            isolation_level=IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED,
            checks_crcs=values["check.crcs"],
            allows_topic_creation=values["allow.auto.create.topics"],
            rack=values["client.rack"],
            interceptors=values["interceptor.classes"],
            group=_group(given, values),
        )


def _group(given: Mapping[str, object], values: Mapping[str, Any]) -> GroupSettings | None:
    """Read what belongs to groups.

    Raises:
        ConfigError: Settings contradict each other, as Kafka's clients say too.
    """
    is_consumer_protocol = values["group.protocol"].lower() == "consumer"
    if is_consumer_protocol and (wrong := [name for name in _CLASSIC_ONLY if given.get(name) is not None]):
        raise ConfigError(f"{wrong[0]} cannot be set with group.protocol=consumer: it is the broker's to decide")
    if values["group.remote.assignor"] is not None and not is_consumer_protocol:
        raise ConfigError("group.remote.assignor needs group.protocol=consumer")
    if values["group.id"] is None:
        if given.get("enable.auto.commit") is not None and values["enable.auto.commit"]:
            raise ConfigError("enable.auto.commit=true needs a group.id")
        return None
    if not values["group.id"].strip():
        raise ConfigError("group.id is empty")
    heartbeat_ms, session_ms = values["heartbeat.interval.ms"], values["session.timeout.ms"]
    if not is_consumer_protocol and heartbeat_ms >= session_ms:
        raise ConfigError(f"heartbeat.interval.ms={heartbeat_ms} must be less than session.timeout.ms={session_ms}")
    return GroupSettings(
        group_id=values["group.id"],
        instance_id=values["group.instance.id"],
        is_consumer_protocol=is_consumer_protocol,
        assignor_names=values["partition.assignment.strategy"],
        remote_assignor=values["group.remote.assignor"],
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=heartbeat_ms,
        poll_interval_ms_max=values["max.poll.interval.ms"],
        is_auto_commit=values["enable.auto.commit"],
        auto_commit_interval_ms=values["auto.commit.interval.ms"],
        excludes_internal_topics=values["exclude.internal.topics"],
        rack=values["client.rack"] or None,
        retry_backoff_ms=values["retry.backoff.ms"],
    )


@attrs.frozen(kw_only=True)
class AdminSettings:
    """An admin client's settings, read and checked."""

    connection: ConnectionSettings
    api_timeout_ms: int
    retries: int

    @classmethod
    def read(cls, given: Mapping[str, object]) -> AdminSettings:
        """Read Kafka's keys.

        Raises:
            ConfigError: A key is unknown or unbuilt, or a value wrong.
        """
        values = read_values(given, ADMIN_KEYS, "admin", COMMON_REFUSALS)
        api_ms = values["default.api.timeout.ms"]
        if given.get("default.api.timeout.ms") is None:
            api_ms = max(api_ms, values["request.timeout.ms"])
        return cls(
            connection=connection_settings(given, values, "odradek-admin"),
            api_timeout_ms=api_ms,
            retries=values["retries"],
        )


__all__ = ["ADMIN_KEYS", "CONSUMER_KEYS", "AdminSettings", "ConsumerSettings", "duration_ms"]
