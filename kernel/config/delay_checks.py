"""Pure core: what a topic's keys of delayed and of failed records mean, and what they must fulfil together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..classes import frozen
from ..records.validation import MAX_MESSAGE_BYTES
from .definitions.vocabulary import MAX_INT
from .keys import Scope
from .tier_checks import invalid
from .values import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .registry import Registry
    from .topic import TopicConfig

DELAY_ENABLE: Final = "odradek.delay.enable"
DELAY_QUEUE: Final = "odradek.delay.queue"
RETRY_TOPIC: Final = "odradek.retry.topic"
RETRY_GROUP: Final = "odradek.retry.group"
RETRY_AUTO: Final = "odradek.retry.auto"
BREAKER_SHARE: Final = "odradek.retry.breaker.share"
BREAKER_WINDOW: Final = "odradek.retry.breaker.window.ms"
BREAKER_MINIMUM: Final = "odradek.retry.breaker.minimum"
RETRY_POLICY: Final = "odradek.retry.policy"
DEAD_LETTERS_ENABLE: Final = "errors.deadletterqueue.group.enable"
DEAD_LETTERS_OF: Final = "odradek.retry.dead.letters.of"
BATCH_LIMIT: Final = "max.message.bytes"
_HEADERS_ROOM_BYTES: Final = 1 << 14
"""For where a record was read first, why it failed, how often: what a record gets that is produced to a retry topic."""
KEPT_KEYS: Final = (DELAY_ENABLE, RETRY_TOPIC, DEAD_LETTERS_OF)
"""Each has a topic keep a ledger of what waits."""
_OWNER_KEYS: Final = (RETRY_TOPIC, RETRY_GROUP, DEAD_LETTERS_OF)
"""Whose what waits is, and where what is dead comes from: with another value all of it would be taken once more."""


def batch_limit_of_failed(limit: str | None, default_bytes: int) -> str | None:
    """Return the `max.message.bytes` of the topics of what a group fails of a topic that was given this one.

    None for what brokers have by default, where none was given or that is as much. A topic's own limit may be low
    because its records are compressed, which failed ones are not; and the default may be lower than it.
    """
    if limit is None:
        return None
    limit_bytes = min(max(int(limit), MAX_MESSAGE_BYTES) + _HEADERS_ROOM_BYTES, MAX_INT)
    return str(limit_bytes) if limit_bytes > default_bytes else None


@frozen
class DelaySettings:
    """How records of a topic wait.

    Attributes:
        takes_new: Whether records that ask for it come to wait; what waits already is delivered in any case.
        delay_ms_max: How long at most.
        queue: A name in `odradek_delay_queues`.
    """

    takes_new: bool
    delay_ms_max: int
    queue: str


@frozen
class BreakerSettings:
    """When nothing dies.

    Attributes:
        share: Above this share of the records that failed for the first time; 0 < share <= 1.
        window_ms: Within so long, and for so long.
        minimum: So many deaths have to be there.
    """

    share: float
    window_ms: int
    minimum: int


@frozen
class RetrySettings:
    """Whose failed records come to a topic.

    Attributes:
        topic: What the group reads.
        group: Its id.
        policy: A name in `odradek_retry_policies`.
        breaker: When nothing dies; None where records always do.
    """

    topic: str
    group: str
    policy: str
    breaker: BreakerSettings | None


def check_delay(topic: TopicConfig, registry: Registry, now: Mapping[str, str]) -> None:
    """Check a topic's keys of delayed records: nothing may take from its log what still waits.

    Args:
        topic: As it is to be.
        registry: What plugins offer.
        now: What is set on the topic now.

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    _check_kept(topic, now)
    _check_retry(topic)
    if topic.delay_settings() is None:
        return
    for key, name in ((DELAY_QUEUE, topic.odradek_delay_queue), (RETRY_POLICY, topic.odradek_retry_policy)):
        try:
            registry.keys[Scope.TOPIC][key].parse(name)
        except InvalidValueError as error:
            raise invalid(str(error)) from error
    key = next(key for key in reversed(KEPT_KEYS) if topic.overrides.get(key))
    if topic.remote_storage_enable and topic.cleanup_policy != ("delete",):
        policies = ",".join(topic.cleanup_policy)
        raise invalid(
            f"{key} does not go with remote.storage.enable=true and cleanup.policy={policies} yet: segments that are "
            "rewritten in the remote store are joined, perhaps where what waits on a follower's disk begins"
        )
    for name in topic.cleanup_policy:
        offered = registry.cleanup_policies.get(name)
        if name == "delete" or (offered is not None and not offered.compacts and not offered.expires):
            continue
        if offered is None:
            raise invalid(f"{key} does not go with cleanup.policy={name}: no active plugin offers that")
        if offered.expires:
            raise invalid(f"{key} does not go with cleanup.policy={name} yet: what waits may lie where records expire")
        if key != DELAY_ENABLE:
            raise invalid(f"{key} does not go with cleanup.policy={name}: what failed is kept until it is given back")


def _check_kept(topic: TopicConfig, now: Mapping[str, str]) -> None:
    """Check that what is set on the topic and may not be taken back, or altered, is as it was.

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    for key in KEPT_KEYS:
        if now.get(key) and not topic.overrides.get(key):
            hint = "; set it to false to take no more" if key == DELAY_ENABLE else ""
            raise invalid(f"{key} cannot be taken back, for records may wait{hint}")
    for key in _OWNER_KEYS:
        before = now.get(key)
        if before and topic.overrides.get(key) != before:
            raise invalid(f"{key} cannot be altered once it is set: it is {before!r}, and what waits or died is that's")


def _check_retry(topic: TopicConfig) -> None:
    """Check the keys of failed records together.

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    if bool(topic.odradek_retry_topic) != bool(topic.odradek_retry_group):
        raise invalid(f"{RETRY_TOPIC} and {RETRY_GROUP} go together: whose failed records come here")
    if topic.odradek_retry_topic and topic.odradek_retry_dead_letters_of:
        raise invalid(f"{RETRY_TOPIC} and {DEAD_LETTERS_OF} are keys of two topics: dead letters are not given back")
    owner = next((key for key in (RETRY_TOPIC, DEAD_LETTERS_OF) if topic.overrides.get(key)), None)
    if owner is not None and topic.odradek_delay_enable:
        raise invalid(f"{DELAY_ENABLE}=true does not go with {owner}: what comes to that topic waits as that says")
