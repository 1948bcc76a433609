"""Pure core: what a topic's keys of delayed records mean, and what they must fulfil together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..classes import frozen
from .keys import Scope
from .tier_checks import invalid
from .values import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .registry import Registry
    from .topic import TopicConfig

DELAY_ENABLE: Final = "odradek.delay.enable"
DELAY_QUEUE: Final = "odradek.delay.queue"


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


def check_delay(topic: TopicConfig, registry: Registry, now: Mapping[str, str]) -> None:
    """Check a topic's keys of delayed records: nothing may take from its log what still waits.

    Args:
        topic: As it is to be.
        registry: What plugins offer.
        now: What is set on the topic now.

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    if topic.delay_settings() is None:
        if DELAY_ENABLE in now:
            raise invalid(f"{DELAY_ENABLE} cannot be taken back, for records may wait: set it to false to take no more")
        return
    try:
        registry.keys[Scope.TOPIC][DELAY_QUEUE].parse(topic.odradek_delay_queue)
    except InvalidValueError as error:
        raise invalid(str(error)) from error
    if topic.remote_storage_enable:
        raise invalid(f"{DELAY_ENABLE} does not go with remote.storage.enable=true yet: what waits has to be local")
    for name in topic.cleanup_policy:
        offered = registry.cleanup_policies.get(name)
        if name != "delete" and (offered is None or offered.compacts or offered.expires):
            raise invalid(
                f"{DELAY_ENABLE} does not go with cleanup.policy={name} yet: segments that hold what waits cannot be "
                "rewritten"
            )
