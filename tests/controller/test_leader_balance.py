"""Leaders go back to preferred replicas once in each interval, as many at a time as fit an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import trio
import trio.testing

from odradek.kernel.controller.leader_balance import LeaderBalance
from odradek.kernel.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.controller.metadata_log import MetadataLog

    from .metadata_helpers import DrivenController

INTERVAL_S = 300


class Log:
    """A metadata log of a controller that answers at once."""

    def __init__(self, brokers: int, *answers: bool | Exception) -> None:
        self.image = self
        self.brokers = range(brokers)
        self.answers = list(answers)
        self.asked_at: list[float] = []

    async def submit(self, operation: Callable[[DrivenController, int], Any]) -> bool:
        del operation
        self.asked_at.append(trio.current_time())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def asked_within(log: Log, seconds: float) -> list[float]:
    async def main() -> list[float]:
        start = trio.current_time()
        with trio.move_on_after(seconds):
            await LeaderBalance(cast("MetadataLog", log), INTERVAL_S).run()
        return [round(at - start) for at in log.asked_at]

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_it_asks_again_at_once_while_there_are_more() -> None:
    log = Log(3, True, True, False, False)

    assert asked_within(log, 2.5 * INTERVAL_S) == [INTERVAL_S, INTERVAL_S, INTERVAL_S, 2 * INTERVAL_S]


def test_a_controller_that_refuses_is_asked_again_after_the_interval() -> None:
    log = Log(3, KafkaError(ErrorCode.NOT_CONTROLLER), False)

    assert asked_within(log, 2.5 * INTERVAL_S) == [INTERVAL_S, 2 * INTERVAL_S]


def test_a_single_broker_has_nothing_to_balance() -> None:
    assert asked_within(Log(1), 3 * INTERVAL_S) == []
