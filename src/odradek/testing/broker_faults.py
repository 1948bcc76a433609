"""Shell: what a test may have go wrong between a broker and its clients; the faults of `RunningBroker`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .request_faults import EVERY_API, Fault, FaultPlan, Treatment, apis_named, error_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.errors import ErrorCode

    from .broker_thread import BrokerThread
    from .faulty_handlers import FaultyHandlers


class BrokerFaults:
    """The faults of one broker: they may be asked for while it serves, is paused or is stopped, and outlive restarts.

    APIs and errors go by their names in Kafka's protocol (`Produce`, `NOT_LEADER_OR_FOLLOWER`); `*` is every API. Each
    method returns the `Fault`: its `met_count` says how many requests it has met, `stop` ends it, and so does a `with`
    block. An unknown name raises a `ValueError` with the nearest one. With `client_id` it happens to that client alone.

    .. versionadded:: 0.1
    """

    def __init__(self) -> None:
        from .faulty_handlers import FaultyHandlers

        self._plan = FaultPlan()
        self._handlers: FaultyHandlers = FaultyHandlers(self._plan)
        self._thread: BrokerThread | None = None

    def fail_next(
        self,
        api: str,
        error: str | ErrorCode,
        times: int = 1,
        *,
        is_done_first: bool = False,
        client_id: str | None = None,
    ) -> Fault:
        """Answer the next requests of an API with an error.

        Args:
            api: Its name.
            error: The error's name.
            times: How many requests.
            is_done_first: Whether the request is carried out all the same, so that the client is told a lie.
            client_id: The only client that this happens to; None for every one.

        Raises:
            ValueError: There is no such API or error.
        """
        treatment = Treatment(error=error_named(error), is_done_first=is_done_first)
        return self._add(api, treatment, times, client_id)

    def drop_next(
        self, api: str, times: int = 1, *, is_done_first: bool = False, client_id: str | None = None
    ) -> Fault:
        """Close the connections of the next requests of an API instead of answering.

        With `is_done_first` the request is carried out and its answer is lost: what duplicates are made of.
        """
        return self._add(api, Treatment(is_dropped=True, is_done_first=is_done_first), times, client_id)

    def delay(self, api: str, ms: int, times: int | None = None, *, client_id: str | None = None) -> Fault:
        """Have the answers of an API leave `ms` milliseconds later, for all requests unless `times` says how many.

        The request is carried out at once, and its connection waits, as for every answer.
        """
        return self._add(api, Treatment(delay_ms=_at_least_one("ms", ms)), times, client_id)

    def throttle(
        self, ms: int, api: str = EVERY_API, times: int | None = None, *, client_id: str | None = None
    ) -> Fault:
        """Say `throttle_time_ms` in answers: the client is to send nothing for so long.

        Answers of APIs and versions without the field stay as they are.
        """
        return self._add(api, Treatment(throttle_ms=_at_least_one("ms", ms)), times, client_id)

    def count(self, api: str, *, client_id: str | None = None) -> Fault:
        """Do nothing to the requests of an API but count them, in `met_count`."""
        return self._add(api, Treatment(), None, client_id)

    def drop_connections(self) -> None:
        """Close every connection at once, whatever it is owed; clients may come again."""
        self._running("drop_connections").drop_connections()

    def _running(self, what: str) -> BrokerThread:
        if self._thread is None:
            raise ValueError(f"{what}: the broker is stopped; start it first")
        self._thread.check()
        return self._thread

    def clear_faults(self) -> None:
        """End every fault that was asked for."""
        self._change(self._plan.clear)

    def _add(self, api: str, treatment: Treatment, times: int | None, client_id: str | None) -> Fault:
        if times is not None:
            _at_least_one("times", times)
        apis = apis_named(api)
        if api != EVERY_API and not all(map(self._handlers.answers, apis)):
            raise ValueError(f"this broker does not answer {api}: nothing of it can fail")
        fault = Fault(apis, treatment, times, client_id)
        self._change(lambda: self._plan.add(fault))
        return fault.stopped_by(lambda which: self._change(lambda: self._plan.remove(which)))

    def _change(self, change: Callable[[], None]) -> None:
        """Change the plan of faults, on the broker's thread while there is one."""

        def change_and_exchange() -> None:
            change()
            self._handlers.exchange()

        if self._thread is None:
            change()
        else:
            self._thread.call(change_and_exchange)


def _at_least_one(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} is {value}: it has to be 1 at least")
    return value
