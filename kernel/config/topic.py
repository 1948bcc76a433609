"""Pure core: the configuration of a topic: its own overrides over the broker's keys that stand in for them.

`TopicConfig` has a typed attribute for every key that the broker's parts read, so that the hot path pays for an
attribute and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..classes import frozen
from ..contracts.cleanup import CleanupSettings
from ..contracts.storage import LogConfig
from ..contracts.tiering import TierSettings
from ..types import INTERNAL_TOPICS
from .definitions.odradek import TIERED, TIERED_OVER
from .delay_checks import KEPT_KEYS, BreakerSettings, DelaySettings, RetrySettings, check_delay
from .keys import Scope
from .tier_checks import FOLLOWS_TOTAL, check_tiers, invalid
from .values import InvalidValueError, parse

if TYPE_CHECKING:
    from .broker import BrokerConfig
    from .keys import ConfigKey
    from .values import Value


@frozen
class TopicConfig:
    """A topic's effective configuration. Immutable; a change makes a new one.

    Attributes are Kafka's keys with underscores; sizes in bytes, times in milliseconds; -1 for retention means "for
    ever". Those of plugins are in `extra`, by their full names. `is_compacted` is whether records without a key are
    refused, because a cleanup policy of the topic goes by keys.
    """

    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    segment_index_bytes: int
    flush_messages: int
    flush_ms: int
    retention_bytes: int
    retention_ms: int
    max_message_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    file_delete_delay_ms: int
    min_cleanable_dirty_ratio: float
    cleanup_policy: tuple[str, ...]
    unclean_leader_election_enable: bool
    min_insync_replicas: int
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    preallocate: bool
    message_timestamp_type: str
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    leader_replication_throttled_replicas: tuple[str, ...]
    follower_replication_throttled_replicas: tuple[str, ...]
    remote_storage_enable: bool
    local_retention_ms: int
    local_retention_bytes: int
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    odradek_storage: str
    odradek_election: str
    odradek_delay_enable: bool
    odradek_delay_max_ms: int
    odradek_delay_queue: str
    odradek_retry_auto: bool
    odradek_retry_topic: str
    odradek_retry_group: str
    odradek_retry_policy: str
    odradek_retry_order: str
    odradek_retry_order_waiting_max: int
    odradek_retry_breaker_share: float
    odradek_retry_breaker_window_ms: int
    odradek_retry_breaker_minimum: int
    odradek_retry_dead_letters_of: str
    errors_deadletterqueue_group_enable: bool
    extra: Mapping[str, Value] = attrs.field(factory=dict)
    overrides: Mapping[str, str] = attrs.field(factory=dict)
    is_compacted: bool = False

    @classmethod
    def resolve(cls, broker: BrokerConfig, overrides: Mapping[str, str] | None = None) -> TopicConfig:
        """Resolve a topic's configuration.

        An override that this version does not know or does not accept (the metadata log was written by another one) is
        left out: the topic stays usable. Checking is `check_topic`'s work, before anything is written.

        Args:
            broker: The broker's configuration.
            overrides: Name to text, as set on the topic.
        """
        own = dict(overrides or {})
        fields: dict[str, Any] = {}
        extra: dict[str, Value] = {}
        for key in broker.registry.keys[Scope.TOPIC].values():
            value = resolve_key(key, broker, own)
            if (field := _FIELDS.get(key.name)) is not None:
                fields[field] = value
            elif key.name != _INTERNAL_SEGMENT_BYTES:
                extra[key.name] = value
        if _INTERNAL_SEGMENT_BYTES in own:
            internal = broker.registry.keys[Scope.TOPIC][_INTERNAL_SEGMENT_BYTES]
            fields["segment_bytes"] = resolve_key(internal, broker, own) or fields["segment_bytes"]
        return cls(**fields, extra=extra, overrides=own, is_compacted=_is_compacted(broker, fields["cleanup_policy"]))

    def log_config(self) -> LogConfig:
        """Return what the topic's logs need to know."""
        config = LogConfig(**{field.name: getattr(self, field.name) for field in attrs.fields(LogConfig)})
        if self.is_compacted and self.max_compaction_lag_ms < self.segment_ms:
            # What must be compacted by then must be closed by then, as Kafka rolls too.
            return attrs.evolve(config, segment_ms=self.max_compaction_lag_ms)
        return config

    def cleanup_settings(self) -> CleanupSettings:
        """Return what cleanup policies need to know."""
        return CleanupSettings(
            cleanup_policy=self.cleanup_policy,
            retention_ms=self.retention_ms,
            retention_bytes=self.retention_bytes,
            delete_retention_ms=self.delete_retention_ms,
            min_compaction_lag_ms=self.min_compaction_lag_ms,
            max_compaction_lag_ms=self.max_compaction_lag_ms,
            min_cleanable_dirty_ratio=self.min_cleanable_dirty_ratio,
            values=self.extra,
        )

    def delay_settings(self) -> DelaySettings | None:
        """Return how records wait; None where none ever did."""
        if not any(self.overrides.get(key) for key in KEPT_KEYS):
            return None
        return DelaySettings(
            takes_new=self.odradek_delay_enable, delay_ms_max=self.odradek_delay_max_ms, queue=self.odradek_delay_queue
        )

    def retry_settings(self) -> RetrySettings | None:
        """Return whose failed records come here; None where nobody's do."""
        if not self.odradek_retry_topic:
            return None
        share, breaker = self.odradek_retry_breaker_share, None
        if share:
            window_ms, minimum = self.odradek_retry_breaker_window_ms, self.odradek_retry_breaker_minimum
            breaker = BreakerSettings(share, window_ms, minimum)
        return RetrySettings(self.odradek_retry_topic, self.odradek_retry_group, self.odradek_retry_policy, breaker)

    def tier_settings(self) -> TierSettings | None:
        """Return what a tier needs to know; None where the topic wants none."""
        if not self.remote_storage_enable:
            return None
        return TierSettings(
            local_retention_ms=_or(self.local_retention_ms, self.retention_ms),
            local_retention_bytes=_or(self.local_retention_bytes, self.retention_bytes),
            remote_log_copy_disable=self.remote_log_copy_disable,
            cleanup=self.cleanup_settings(),
        )


def _or(value: int, total: int) -> int:
    """Return a local limit: the whole log's where it follows that."""
    return total if value == FOLLOWS_TOTAL else value


def _is_compacted(broker: BrokerConfig, policies: Iterable[str]) -> bool:
    """Say whether a policy goes by keys: `compact`, offered or not, as its records must suit it when it is again."""
    offered = broker.registry.cleanup_policies
    return any(name == "compact" or (name in offered and offered[name].requires_keys) for name in policies)


CLEANUP_POLICY: Final = "cleanup.policy"
_INTERNAL_SEGMENT_BYTES: Final = "internal.segment.bytes"
"""Kafka's way around the lower bound of `segment.bytes`; for tests. Not shown by DescribeConfigs."""

_FIELDS: Final = {
    field.name.replace("_", "."): field.name
    for field in attrs.fields(TopicConfig)
    if field.name not in {"extra", "overrides", "is_compacted"}
}


def resolve_key(key: ConfigKey, broker: BrokerConfig, overrides: Mapping[str, str]) -> Value:
    """Return the effective value of a key of a topic or a group.

    Args:
        key: The key.
        broker: The broker's configuration, which stands in.
        overrides: What is set on the topic or the group.
    """
    if key.name in overrides:
        try:
            return key.parse(overrides[key.name])
        except InvalidValueError:
            if key.name == CLEANUP_POLICY:
                # A policy whose plugin is not enabled now: another one in its place would remove what it keeps.
                return parse(key.name, overrides[key.name], key.type)
    stand_in = broker.first_of(key.synonyms) if key.synonyms else None
    return key.default if stand_in is None else stand_in


def expand_storage(config: BrokerConfig, overrides: Mapping[str, str], topic: str) -> dict[str, str]:
    """Return what is to be set on a new topic, with `odradek.storage=tiered`, its own or the broker's, written out.

    So what a topic is stays what it was created as, whatever the broker's default becomes, and every client sees it.
    Kafka's internal topics are never tiered: for them it is what it is short for, without the tier.

    Raises:
        KafkaError: INVALID_CONFIG: it is tiered, and is not.
    """
    own = dict(overrides)
    if own.get("odradek.storage", config.get_text("odradek.storage")) != TIERED:
        return own
    wants_tier = own.get(_REMOTE_ENABLE, "true").strip().lower() == "true"
    if not wants_tier and "odradek.storage" in own:
        raise invalid(f"odradek.storage={TIERED} is short for {TIERED_OVER} with {_REMOTE_ENABLE}=true, not false")
    own["odradek.storage"] = TIERED_OVER
    if wants_tier and topic not in INTERNAL_TOPICS:
        own[_REMOTE_ENABLE] = "true"
    return own


_REMOTE_ENABLE: Final = "remote.storage.enable"


def check_topic(config: BrokerConfig, overrides: Mapping[str, str], now: Mapping[str, str] | None = None) -> None:
    """Check all that is to be set on a topic, before it is written.

    Args:
        config: The broker's configuration, which stands in for what the topic does not set.
        overrides: Name to text; everything that will be set on the topic.
        now: What is set on it now; None for a new one. What stays as it is may have lost its plugin.

    Raises:
        KafkaError: INVALID_CONFIG with the first key that is unknown, else the first, in the order of their
            definitions, that is refused or has a wrong value.
    """
    now = now or {}
    keys = config.registry.keys[Scope.TOPIC]
    for name, text in overrides.items():
        if name not in keys and now.get(name) != text:
            hint = config.registry.hint(Scope.TOPIC, name)
            raise invalid(f"Unknown topic config name: {name}{f'; {hint}' if hint else ''}")
    for name, key in keys.items():
        if name not in overrides or (name == CLEANUP_POLICY and now.get(name) == overrides[name]):
            continue
        try:
            value = key.parse(overrides[name])
        except InvalidValueError as error:
            raise invalid(str(error)) from error
        if key.refused_because and value != key.default:
            raise invalid(f"{name} is refused: {key.refused_because}")
    topic = TopicConfig.resolve(config, overrides)
    low, high = topic.min_compaction_lag_ms, topic.max_compaction_lag_ms
    if low > high:
        raise invalid(f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})")
    check_tiers(topic, is_on=config.get_bool("remote.log.storage.system.enable"), was_tiered=_was_tiered(now))
    check_delay(topic, config.registry, now)
    for policy in topic.cleanup_policy:
        offered = config.registry.cleanup_policies.get(policy)
        problem = offered.problem_with(topic.cleanup_settings()) if offered is not None else ""
        if problem:
            raise invalid(problem)


def _was_tiered(overrides: Mapping[str, str]) -> bool:
    return overrides.get(_REMOTE_ENABLE, "false").strip().lower() == "true"
