"""Shell: puts the faults of a test between the router and the handlers of those APIs that a fault is asked for.

A route whose API no fault is meant for is the broker's own, untouched: no request asks whether there are faults. For
the others the route's handler is exchanged, and put back when the last of its faults is over, and no request that one
has met has yet to come by here again, in the task that answers it::

    router -> route -> FaultyHandler -> the handler
                           answers <- TreatedContext <-

The errors are what the handler itself answers when it fails as a whole (`error_response`), in any version.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.contracts.api_handler import AS_TASK, PENDING
from odradek.kernel.errors import KafkaError
from odradek.kernel.network.connection import MEMORY
from odradek.kernel.purgatory.timing_wheel import TimerEntry
from odradek.kernel.wire.codec import ELEMENTS_MAX, decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.kernel.broker.parts import BrokerParts
    from odradek.kernel.contracts.api_handler import Answer, RequestContext
    from odradek.kernel.dispatch.routes import Route
    from odradek.kernel.errors import ErrorCode

    from .request_faults import FaultPlan, Treatment

DROPPED: Final = "a test drops the connection"
_SIZE_AND_CORRELATION_BYTES: Final = 8


@attrs.define(eq=False)
class _LateAnswer(TimerEntry):
    """An answer that leaves when its time has come."""

    send: Callable[[], None]
    waiting: set[_LateAnswer]

    def expire(self) -> None:
        """Let it leave."""
        self.waiting.discard(self)
        self.send()


class TreatedContext:
    """A request that a fault has met, as its handler sees it: whatever it is answered goes by here.

    Everything but answering is the request's own.
    """

    def __init__(self, context: RequestContext, treatment: Treatment, handler: FaultyHandler, body: Any) -> None:
        self._context = context
        self._treatment = treatment
        self._handler = handler
        self._body = body

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    @property
    def is_carried_out(self) -> bool:
        """Whether its handler sees it at all."""
        return not self._treatment.takes_answer or self._treatment.is_done_first

    def reply(self, response: Any) -> None:
        """See `RequestContext.reply`."""
        self._later(partial(self._send, response))

    def reply_frame(self, parts: Sequence[Any]) -> None:
        """See `RequestContext.reply_frame`. One with slices of files is not taken apart: it is not throttled."""
        if self._treatment.throttle_ms and all(isinstance(part, MEMORY) for part in parts):
            self.reply(self._handler.decode_answer(b"".join(parts), self._context.api_version))
        else:
            self._later(partial(self._send_frame, parts))

    def _later(self, send: Callable[[], None]) -> None:
        if self._treatment.delay_ms:
            self._handler.faults.after(self._treatment.delay_ms, send)
        else:
            send()

    def _send_frame(self, parts: Sequence[Any]) -> None:
        if self._treatment.takes_answer:
            self._send(None)
        else:
            self._context.reply_frame(parts)

    def _send(self, response: Any) -> None:
        treatment, context = self._treatment, self._context
        if treatment.is_dropped:
            context.fail(DROPPED)
            return
        if treatment.error is not None:
            response = self._handler.failed(self._body, context, treatment.error, "")
        if not treatment.throttle_ms or not hasattr(response, "throttle_time_ms"):
            context.reply(response)
            return
        # An answer may be one that its handler keeps for others.
        before, response.throttle_time_ms = response.throttle_time_ms, treatment.throttle_ms
        context.reply(response)
        response.throttle_time_ms = before


class FaultyHandler:
    """Stands in for a route's handler while there are faults for its API. Owned by the broker's thread."""

    def __init__(self, route: Route, faults: FaultyHandlers) -> None:
        self.api_key = route.api_key
        self.faults = faults
        self._route = route
        self._inner: Any = route.handler
        self._as_tasks: dict[int, TreatedContext] = {}

    def __repr__(self) -> str:
        return f"<FaultyHandler of {self._route!r}>"

    def handle(self, body: Any, context: RequestContext) -> Answer:
        """See `ApiHandler.handle`."""
        if not hasattr(self._inner, "handle"):
            return AS_TASK
        treated = self._meet(body, context)
        if treated is None:
            if self._as_tasks:
                self.faults.exchange()
            return self._inner.handle(body, context)
        answer: Any = None
        try:
            if treated.is_carried_out:
                answer = self._inner.handle(body, treated)
        except KafkaError as error:
            answer = self.failed(body, context, error.code, error.detail)
        finally:
            if answer is AS_TASK:
                self._as_tasks[id(context)] = treated
            self.faults.exchange()
        if answer is AS_TASK:
            return AS_TASK
        if answer is not PENDING:
            treated.reply(answer)
        return PENDING

    async def handle_async(self, body: Any, context: RequestContext) -> Answer:
        """See `AsyncApiHandler.handle_async`."""
        treated = self._as_tasks.pop(id(context), None)
        if treated is None and not hasattr(self._inner, "handle"):
            treated = self._meet(body, context)
        if treated is None:
            return await self._inner.handle_async(body, context)
        self.faults.exchange()
        answer: Any = None
        try:
            if treated.is_carried_out:
                answer = await self._inner.handle_async(body, treated)
        except KafkaError as error:
            answer = self.failed(body, context, error.code, error.detail)
        if answer is not PENDING:
            treated.reply(answer)
        return PENDING

    def _meet(self, body: Any, context: RequestContext) -> TreatedContext | None:
        """Return the request as its handler is to see it; None if no fault meets it."""
        treatment = self.faults.plan.meet(self.api_key, context.client_id, body)
        return None if treatment is None else TreatedContext(context, treatment, self, body)

    def is_awaited(self) -> bool:
        """Return whether a request that was met has yet to come back in a task: of a client that left none need to."""
        for key in [key for key, treated in self._as_tasks.items() if not treated.connection.is_open]:
            del self._as_tasks[key]
        return bool(self._as_tasks)

    def failed(self, body: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return what a request is answered that fails, counted as the router counts it."""
        self._route.errors_count += 1
        return self._inner.error_response(body, context, code, detail)

    def error_response(self, body: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """See `ApiHandler.error_response`."""
        return self._inner.error_response(body, context, code, detail)

    def decode_answer(self, frame: bytes, version: int) -> Any:
        """Return the message of an answer that was encoded already."""
        api = self._route.api
        body = _SIZE_AND_CORRELATION_BYTES + (api.response_header_version(version) > 0)
        return decoder(api.response, version)(memoryview(frame), body, ELEMENTS_MAX)[0]


class FaultyHandlers:
    """Exchanges the handlers of one broker as its plan of faults wants it. Owned by the broker's thread."""

    def __init__(self, plan: FaultPlan) -> None:
        self.plan = plan
        self._parts: BrokerParts | None = None
        self._own: dict[int, tuple[FaultyHandler, Any, Any, bool]] = {}
        self._late: set[_LateAnswer] = set()

    def __repr__(self) -> str:
        return f"<FaultyHandlers of {len(self._own)} routes, {len(self._late)} answers wait>"

    def attach(self, parts: BrokerParts) -> None:
        """Take a broker that has not begun to serve."""
        self._parts = parts
        self._own.clear()
        self._late.clear()
        self.exchange()

    def answers(self, api_key: int) -> bool:
        """Return whether the broker answers an API at all."""
        return self._parts is None or api_key in self._parts.requests.router.routes

    def exchange(self) -> None:
        """Put faulty handlers where faults are left, and the broker's own everywhere else."""
        assert self._parts is not None, "a broker is attached before it serves"
        routes, wanted = self._parts.requests.router.routes, self.plan.faulty_apis()
        for key in [key for key, (faulty, *_) in self._own.items() if key not in wanted and not faulty.is_awaited()]:
            route = routes[key]
            _faulty, route.handler, route.repeats, route.is_async = self._own.pop(key)
        for key in wanted:
            if key in routes and key not in self._own:
                route = routes[key]
                faulty = FaultyHandler(route, self)
                self._own[key] = (faulty, route.handler, route.repeats, route.is_async)
                # What repeats an earlier request is handled past `handle`.
                route.handler, route.repeats, route.is_async = faulty, None, False

    def after(self, delay_ms: int, send: Callable[[], None]) -> None:
        """Send an answer later."""
        assert self._parts is not None, "a broker is attached before it serves"
        late = _LateAnswer(self._parts.machine.clock.monotonic_ms() + delay_ms, send, self._late)
        self._late.add(late)
        self._parts.requests.waiting.wheel.add(late)

    def release(self) -> None:
        """Let every answer leave that is held back: the broker stops."""
        for late in list(self._late):
            late.cancel_timer()
            late.expire()
