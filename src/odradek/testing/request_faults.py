"""Pure core: what goes wrong with requests because a test asked for it: which of them, how often, and in what way.

    plan.add(Fault(apis=frozenset({0}), error=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3))
    plan.meet(0, "a client", request)       the first of three: Treatment(error=NOT_LEADER_OR_FOLLOWER)

Several faults may meet one request: their delays add up, the longest throttle counts, and the first that takes the
answer away (an error, a lost connection) is the only one of that kind; the others wait for the next request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.registry import APIS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Self

EVERY_API: Final = "*"
HELPERS_CLIENT_ID: Final = "odradek-test-helper"
"""The client id of a broker's helpers (`records`, `wait_for_lag`): no fault meets them."""


@attrs.frozen
class Treatment:
    """What is done to one request.

    Attributes:
        error: The error that it is answered with instead.
        is_dropped: Whether its connection is closed instead of an answer.
        is_done_first: Whether the request is carried out before its answer is lost or replaced.
        delay_ms: How much later the answer leaves.
        throttle_ms: The `throttle_time_ms` of the answer.
    """

    error: ErrorCode | None = None
    is_dropped: bool = False
    is_done_first: bool = False
    delay_ms: int = 0
    throttle_ms: int = 0

    @property
    def takes_answer(self) -> bool:
        """Whether the client does not get what the broker would say."""
        return self.is_dropped or self.error is not None


@attrs.define(eq=False)
class Fault:
    """One fault that a test asked for; as a `with` block it ends with the block.

    Owned by the broker's thread; `met_count` may be read by any.

    Attributes:
        apis: The keys of the APIs that it meets.
        treatment: What it does to a request.
        times: How many requests it meets, None for all until it is stopped.
        client_id: The only client that it meets; None for every one.
        on_met: Given each request that it meets, with its client's id, before anything is done to it.
        met_count: How many it has met.

    .. versionadded:: 0.1
    """

    apis: frozenset[int]
    treatment: Treatment
    times: int | None = None
    client_id: str | None = None
    on_met: Callable[[str | None, Any], None] = lambda _client_id, _request: None
    met_count: int = attrs.field(init=False, default=0)
    _stop: Callable[[Fault], None] = attrs.field(init=False, default=lambda _fault: None)

    @property
    def is_over(self) -> bool:
        """Whether it has met as many as it should."""
        return self.times is not None and self.met_count >= self.times

    def wants(self, api_key: int, client_id: str | None) -> bool:
        """Return whether it meets a request."""
        return (
            api_key in self.apis
            and not self.is_over
            and client_id != HELPERS_CLIENT_ID
            and self.client_id in (None, client_id)
        )

    def stopped_by(self, stop: Callable[[Fault], None]) -> Self:
        """Take note of how it is ended; return itself."""
        self._stop = stop
        return self

    def stop(self) -> None:
        """Let it meet no further request; nothing happens the second time."""
        self._stop(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class FaultPlan:
    """All faults of one broker, in the order in which they were asked for. They outlive its restarts."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def __repr__(self) -> str:
        return f"<FaultPlan, {len(self._faults)} faults>"

    def add(self, fault: Fault) -> None:
        """Let a fault meet requests from now on."""
        self._faults.append(fault)

    def remove(self, fault: Fault) -> None:
        """Let it meet none any more."""
        if fault in self._faults:
            self._faults.remove(fault)

    def clear(self) -> None:
        """Remove all."""
        self._faults.clear()

    def faulty_apis(self) -> set[int]:
        """Return the keys of the APIs that some fault may still meet."""
        return {key for fault in self._faults if not fault.is_over for key in fault.apis}

    def meet(self, api_key: int, client_id: str | None, request: Any) -> Treatment | None:
        """Return what is done to a request, None for nothing; it counts for every fault that takes part."""
        error, is_dropped, is_done_first, delay_ms, throttle_ms, has_met = None, False, False, 0, 0, False
        for fault in self._faults:
            wanted = fault.treatment
            is_answered_already = is_dropped or error is not None
            if not fault.wants(api_key, client_id) or (wanted.takes_answer and is_answered_already):
                continue
            fault.met_count += 1
            fault.on_met(client_id, request)
            has_met = True
            delay_ms += wanted.delay_ms
            throttle_ms = max(throttle_ms, wanted.throttle_ms)
            if wanted.takes_answer:
                error, is_dropped, is_done_first = wanted.error, wanted.is_dropped, wanted.is_done_first
        return Treatment(error, is_dropped, is_done_first, delay_ms, throttle_ms) if has_met else None


def apis_named(name: str) -> frozenset[int]:
    """Return the keys of the API of this name, or of every one for `*`.

    Raises:
        ValueError: There is none; with the nearest name that there is.
    """
    if name == EVERY_API:
        return frozenset(APIS)
    keys = {api.name: key for key, api in APIS.items()}
    if name not in keys:
        raise ValueError(f"Kafka has no API {name!r}{nearest(name, keys)}")
    return frozenset({keys[name]})


def error_named(error: str | ErrorCode) -> ErrorCode:
    """Return Kafka's error of this name.

    Raises:
        ValueError: There is none, with the nearest name that there is; or it is NONE, which is no error.
    """
    name = error.name if isinstance(error, ErrorCode) else error
    if name not in ErrorCode.__members__:
        raise ValueError(f"Kafka has no error {name!r}{nearest(name, ErrorCode.__members__)}")
    if name == ErrorCode.NONE.name:
        raise ValueError("NONE is no error: leave the fault out, or stop it")
    return ErrorCode[name]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `: did you mean ...?` where a known name is near to one that is not, else nothing."""
    import difflib  # takes 10 ms to import

    by_capitals = {each.upper(): each for each in known}
    found = difflib.get_close_matches(name.upper(), by_capitals, n=1, cutoff=0.5)
    return f": did you mean {by_capitals[found[0]]!r}?" if found else ""
