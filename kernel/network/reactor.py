"""Shell: the reactor: one trio task that serves all sockets over a nested epoll descriptor.

trio watches one descriptor, ours; ours watches all sockets. Handling a ready socket is then a plain call, where a trio
task per connection costs a wake-up each: `docs/decisions/0005-one-reactor-task.md` has the figures. In a run of the
broker's own ours watches trio's instead, and the reactor sleeps for both: `sleeper.py`.

.. versionadded:: 0.1
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ..classes import define
from ..machine.poller import ONE_SHOT, READABLE
from .connection import LARGE_FRAME_BYTES
from .endpoint import READ, Endpoint
from .loop import TURN_SECONDS_MAX, Loop
from .receive_memory import WINDOW_BYTES_MIN
from .sleeper import Sleeper, may_take_over_sleep

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from ..machine.network import ListeningSocket
    from ..machine.poller import Poller
    from .frame_receiver import Driver

EVENTS_PER_TURN_MAX: Final = 64
"""How many ready sockets one turn serves; epoll hands out the others next."""
REST_BYTES_PER_TURN: Final = 1024 * 1024
"""When this much has come of frames that had begun, the rest of the others waits for the next turn."""


def load_pump() -> ModuleType | None:
    """Return the compiled twin of what a turn does most, where it could be built."""
    try:
        return importlib.import_module("._pump", __package__)
    except ImportError:
        return None


PUMP: Final = load_pump()


@define(eq=False, kw_only=True)
class Reactor(Loop):
    """The loop for systems with epoll; `run` is its one task.

    Invariants: `_handlers` holds exactly the descriptors registered with `poller`, `_plain` those of plain TCP.

    With the pump (`_pump.c`) the usual case of all ready sockets, a request that came whole and an answer that is
    at hand, in memory or in the page cache, is received and sent by one call each; everything else goes through the
    endpoints' methods, which do the usual case, too, where there is no pump.

    What comes by a listener that goes first, the controller's, is taken before all else of its turn: heartbeats and
    news wait for the clients of turns before theirs, each of which serves so many sockets at most, and for no others.

    Who asks for little does not wait for who sends much: a turn first serves everybody whose frame begins, those
    who sent a large one last behind the others, then receives the rest of larger frames, one connection after the
    other, up to a bound; epoll tells of the others again.
    """

    poller: Poller
    _timer: Callable[[], float] = attrs.field(init=False)
    _is_woken: bool = attrs.field(init=False, default=False)
    _handlers: dict[int, Callable[[int], None]] = attrs.field(init=False, factory=dict)
    _postponed: dict[Endpoint, None] = attrs.field(init=False, factory=dict)
    _plain: dict[int, Endpoint] = attrs.field(init=False, factory=dict)
    _receives_rests: bool = attrs.field(init=False, default=False)
    _first: set[int] = attrs.field(init=False, factory=set)
    _busy_from: float = attrs.field(init=False, default=0.0)
    pump: ModuleType | None = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Watch what wakes the loop."""
        super().__attrs_post_init__()
        self._timer = self.machine.timer
        self.pump = PUMP if self.machine.network.is_system else None
        self._handlers[self.poller.wake_descriptor] = self._on_wake

    def _on_wake(self, mask: int) -> None:
        self.poller.woken()
        self._is_woken = False

    def wake(self) -> None:
        """Have a turn made soon; called between turns, and by whoever stages something while all this ends."""
        if not self._is_woken and not self.poller.closed:
            self._is_woken = True
            self.poller.wake()

    def watch(self, endpoint: Endpoint, interest: int) -> None:
        """Watch the endpoint's socket for `READ`, `WRITE`, both or (0) hang-ups only."""
        if endpoint.interest != interest:
            endpoint.interest = interest
            self.poller.modify(endpoint.socket.fileno(), interest)

    def watch_listener(self, listening: ListeningSocket, on_readable: Callable[[], None]) -> None:
        """Call `on_readable` while clients wait at `listening`."""
        self._handlers[listening.fileno()] = lambda _mask: on_readable()
        self.poller.register(listening.fileno(), READABLE)

    def pause_listener(self, listening: ListeningSocket, is_paused: bool) -> None:
        """Stop calling for a while, or go on."""
        self.poller.modify(listening.fileno(), 0 if is_paused else READABLE)

    def unwatch_listener(self, listening: ListeningSocket) -> None:
        """Stop calling: the socket is about to be closed."""
        if not self.poller.closed:
            del self._handlers[listening.fileno()]
            self.poller.unregister(listening.fileno())

    def _attach(self, endpoint: Endpoint) -> None:
        descriptor = endpoint.socket.fileno()
        self._handlers[descriptor] = endpoint.on_event
        if type(endpoint) is Endpoint:
            self._plain[descriptor] = endpoint
        if endpoint.connection.listener_name in self.first_listeners:
            self._first.add(descriptor)
        self.poller.register(descriptor, READ)

    def _detach(self, endpoint: Endpoint) -> None:
        descriptor = endpoint.socket.fileno()
        self._postponed.pop(endpoint, None)
        del self._handlers[descriptor]
        self._plain.pop(descriptor, None)
        self._first.discard(descriptor)
        self.poller.unregister(descriptor)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; then every connection is closed at once."""
        try:
            await super().run(task_status=task_status)
        finally:
            self.poller.close()

    async def _run_turns(self, nursery: trio.Nursery, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        timer = self._timer
        self._busy_from = timer()
        if self.machine.network.is_system and may_take_over_sleep():
            await Sleeper(self).run()
        is_busy = False
        while True:
            if is_busy or self.resumed:
                await trio.lowlevel.checkpoint()
            else:
                self._count_busy()
                await self.poller.wait()
                self._busy_from = timer()
            is_busy = self.sleep_and_serve(0)

    def _count_busy(self) -> float:
        now = self._timer()
        self.busy_seconds += now - self._busy_from
        self._busy_from = now
        return now

    def watch_trio(self, descriptor: int, on_ready: Callable[[], None]) -> None:
        """Call `on_ready` once trio's own epoll, `descriptor`, has events; not again before `watch_trio_again`."""
        self._handlers[descriptor] = lambda _mask: on_ready()
        self.poller.register(descriptor, READABLE | ONE_SHOT)

    def watch_trio_again(self, descriptor: int) -> None:
        """Call for the next events, too, or for those that are still there."""
        self.poller.modify(descriptor, READABLE | ONE_SHOT)

    def unwatch_trio(self, descriptor: int) -> None:
        """Stop calling."""
        del self._handlers[descriptor]
        self.poller.unregister(descriptor)

    def sleep_and_serve(self, seconds: float) -> bool:
        """Wait for sockets, `seconds` at most, make turns for 1 ms, and return whether there may be more to do."""
        poll, timer = self.poller.poll, self._timer
        now = self._count_busy()
        if seconds > 0 and not self.resumed:
            events = poll(seconds, EVENTS_PER_TURN_MAX)
            now = self._busy_from = timer()
        else:
            events = poll(0, EVENTS_PER_TURN_MAX)
        turns_end = now + TURN_SECONDS_MAX
        self.now_ms = self.clock.monotonic_ms()
        while events or self.resumed:
            self.turn(events)
            if timer() >= turns_end:
                return True
            events = poll(0, EVENTS_PER_TURN_MAX)
        return False

    def turn(self, events: list[tuple[int, int]]) -> None:
        """Make one turn: serve the sockets that are ready, end the turn, send."""
        self.begin_turn()
        handlers = self._handlers
        if self._first and len(events) > 1:
            events.sort(key=self._comes_later)
        if self._plain and self.pump is not None and events:
            events = self._receive_small(self.pump, events)
        for descriptor, mask in events:
            # A socket may have been closed by the event of another one in this very turn.
            handler = handlers.get(descriptor)
            if handler is not None:
                handler(mask)
        if self._postponed:
            self._receive_rests()
        self.finish_turn()

    def _comes_later(self, event: tuple[int, int]) -> bool:
        return event[0] not in self._first

    def _receive_small(self, pump: ModuleType, events: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Receive and process what the pump takes; return the other events."""
        memory = self.memory
        rest: list[tuple[int, int]]
        taken, rest, failures, memory.arena_position, size_bytes = pump.receive(
            events,
            self._plain,
            memory.arena_view,
            memory.arena_position,
            memory.window_bytes,
            WINDOW_BYTES_MIN,
            LARGE_FRAME_BYTES,
        )
        self.bytes_in += size_bytes
        now_ms = self.now_ms
        frame_received = self.receiver.frame_received
        for endpoint, view, is_whole_frame in taken:
            # A socket may have been closed by what came from another one in this very turn.
            if not endpoint.connection.is_open:
                continue
            endpoint.last_active_ms = now_ms
            if not is_whole_frame:
                endpoint.take_window(view)
                continue
            try:
                frame_received(endpoint.connection, view)
                self.frames_count += 1
            except Exception as error:
                endpoint.fail(error)
        for endpoint, number in failures:
            endpoint.receiving_failed(OSError(number, os.strerror(number)))
        return rest

    def _flush(self, dirty: list[Driver]) -> None:
        if self.pump is not None:
            dirty[:], size_bytes = self.pump.send(dirty, Endpoint)
            self.bytes_out += size_bytes
        if not dirty:
            return
        super()._flush(dirty)

    def postpone(self, endpoint: Endpoint) -> bool:
        """See `Loop.postpone`: the connection that has waited longest goes first."""
        if self._receives_rests:
            return False
        self._postponed.setdefault(endpoint)
        return True

    def _receive_rests(self) -> None:
        postponed = self._postponed
        end = self.bytes_in + REST_BYTES_PER_TURN
        self._receives_rests = True
        while postponed and self.bytes_in < end:
            endpoint = next(iter(postponed))
            del postponed[endpoint]
            endpoint.on_event(READ)
        self._receives_rests = False
