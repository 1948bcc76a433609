"""Shell: what replicas of topics with delayed or failed records have beside the others: a ledger, a stage of their own.

| module | what |
| --- | --- |
| this one | makes the ledger of a replica that is opened |
| `delay_beginnings` | fills that of one whose topic gets `odradek.delay.enable` |
| `delay_recovery` | fills it from the log, and keeps it beside that |
| `leading`, `following` | tell it of what is appended |
| `delay_delivery`, `delay_batches` | has what is due appended; makes the batches |
| `delay_carrying`, `delay_pieces` | has what waits in segments that are to go appended again |
| `dead_letters`, `dead_letter_taking`, `dead_letter_batches` | have dead letters of retry topics appended to theirs |
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..classes import define
from ..config.delay_checks import DELAY_QUEUE, RETRY_POLICY
from ..contracts.retry_policy import RetryPolicy
from ..plugin_system.manager import choose_offer, failed
from ..plugin_system.offers import check_made, plugin_of_object
from .delay_beginnings import DelayBeginning
from .delay_recovery import recover_delays_in_steps

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Generator, Mapping

    from ..config.delay_checks import BreakerSettings, DelaySettings, RetrySettings
    from ..contracts.delay_queue import DelayQueueFactory
    from ..contracts.retry_policy import RetryPolicyFactory
    from ..contracts.storage import PartitionLog
    from ..delay.ledger import DelayLedger
    from ..delay.stage import DelayStage
    from ..retry.breaker import Breaker
    from ..retry.stage import RetryStage
    from ..types import TopicIdPartition
    from .replica import Replica


def _nothing(*_told: object) -> None:
    """Do nothing: nobody delivers."""


@define(eq=False)
class Retries:
    """Makes the stages of retry topics. Owned by the replicas' opener.

    Attributes:
        policies: What plugins offer, by name.
        now_ms: The wall clock.
        chance: What policies are given of it.
        breakers: The circuit breakers of partitions that have one; one that is set as before goes on.
    """

    policies: Mapping[str, RetryPolicyFactory]
    now_ms: Callable[[], int]
    chance: random.Random
    breakers: dict[TopicIdPartition, Breaker]

    def stage(self, partition: TopicIdPartition, settings: RetrySettings, values: Mapping[str, object]) -> RetryStage:
        """Return what has the records of a partition wait until they are given back.

        Args:
            partition: The retry topic's.
            settings: Whose failed records they are.
            values: Plugins' topic keys, by name.

        Raises:
            PluginError: No active plugin has the policy, or it cannot be made.
        """
        from ..retry.rewriting import Owner  # a broker without retry topics does not pay for it
        from ..retry.stage import RetryStage

        factory = choose_offer(self.policies, settings.policy, "retry policy", RETRY_POLICY)
        try:
            policy = factory(values)
        except Exception as error:
            what = f"retry policy {settings.policy!r} cannot be made"
            raise failed(plugin_of_object(factory), what, error) from error
        check_made(policy, RetryPolicy, f"what retry policy {settings.policy!r} makes", factory)
        owner = Owner(settings.topic, settings.group)
        breaker = self._breaker(partition, settings.breaker)
        return RetryStage(owner, policy, now_ms=self.now_ms, chance=self.chance, breaker=breaker, place=partition)

    def _breaker(self, partition: TopicIdPartition, settings: BreakerSettings | None) -> Breaker | None:
        from ..retry.breaker import Breaker  # as above

        known = self.breakers.get(partition)
        if settings is None:
            self.breakers.pop(partition, None)
            return None
        if known is None or known.settings != settings:
            known = self.breakers[partition] = Breaker(settings, 0 if known is None else known.spared_count)
        return known


@define(eq=False)
class Delays:
    """Makes ledgers. Owned by the replicas' opener.

    Attributes:
        queues: What plugins offer, by name.
        now_ms: The wall clock.
        on_due: Called with a ledger, and when something of it may be due, whenever something has begun to wait.
        on_opened: Called with each replica that has a ledger, once it is in the table, and when it may lead.
        on_begun: Called with each replica that serves and is to get one.
        on_unreadable: Called with the offset of a batch of a partition whose delayed records cannot be read, and why.
    """

    queues: Mapping[str, DelayQueueFactory]
    now_ms: Callable[[], int]
    on_due: Callable[[DelayLedger, int], None] = _nothing
    on_opened: Callable[[Replica], None] = _nothing
    on_begun: Callable[[Replica], None] = _nothing
    on_unreadable: Callable[[TopicIdPartition, int, Exception], None] = _nothing

    def stage(self, settings: DelaySettings | None, values: Mapping[str, object]) -> tuple[DelayStage, ...]:
        """Return what has the batches of a partition split; nothing where no new records come to wait.

        Args:
            settings: How they wait.
            values: Plugins' topic keys, by name.

        Raises:
            PluginError: No active plugin has the queue, or it cannot say how it rounds.
        """
        if settings is None or not settings.takes_new:
            return ()
        from ..delay.stage import DelayStage  # a broker without delayed records does not pay for it

        factory = choose_offer(self.queues, settings.queue, "delay queue", DELAY_QUEUE)
        try:
            rounding = factory.rounding(values)
        except Exception as error:
            what = f"delay queue {settings.queue!r} cannot say how it rounds"
            raise failed(plugin_of_object(factory), what, error) from error
        return (DelayStage(self.now_ms, settings.delay_ms_max, rounding),)

    def recover_in_steps(
        self, log: PartitionLog, settings: DelaySettings | None
    ) -> Generator[None, None, DelayLedger | None]:
        """Return the ledger of a log that was opened, the local part of one in two tiers; None where there is none.

        Raises:
            PluginError: No active plugin has the queue.
        """
        if settings is None:
            return None
        ledger = self._new(log.partition, settings)
        yield from recover_delays_in_steps(log, ledger)
        return ledger

    def begin(self, replica: Replica, settings: DelaySettings) -> None:
        """Have a ledger filled for a replica that serves, unless it has one, or is about to.

        Raises:
            PluginError: No active plugin has the queue.
        """
        if replica.delays is None and replica.delay_beginning is None:
            replica.delay_beginning = DelayBeginning(self._new(replica.partition, settings), self.on_opened)
            self.on_begun(replica)

    def _new(self, partition: TopicIdPartition, settings: DelaySettings) -> DelayLedger:
        from ..delay.ledger import DelayLedger  # as above

        factory = choose_offer(self.queues, settings.queue, "delay queue", DELAY_QUEUE)
        ledger = DelayLedger(factory, on_due=_nothing, on_unreadable=partial(self.on_unreadable, partition))
        ledger.on_due = partial(self.on_due, ledger)
        return ledger
