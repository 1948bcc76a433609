"""Shell: what both loops share: turns, completions between turns, memory, limits, idle time-outs, draining.

A turn: every ready endpoint reads and gives its frames to the receiver; `turn_ended` once; every endpoint with
something to send is flushed. Answers completed between turns (timers, tasks, worker threads) wake the loop, which then
makes a turn without reading.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
import trio

from ..classes import define
from ..purgatory.timing_wheel import until_beat_ms
from .connection import Connection, Turn
from .endpoint import HAS_SENDFILE, READ, STALL_MS_MAX, Endpoint, SliceProgress, read_into_cache
from .paces import Paces
from .receive_memory import ReceiveMemory
from .statistics import NetworkStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..machine.clock import Clock
    from ..machine.machine import Machine
    from ..machine.network import ListeningSocket, Socket
    from .frame_receiver import Driver, FrameReceiver
    from .settings import ListenerSettings, NetworkSettings

_log = logging.getLogger(__name__)

TURN_SECONDS_MAX: Final = 0.001
"""How long turns go on before trio's other tasks and timers get theirs; longer hurts timers, shorter throughput."""

SWEEP_MS_MAX: Final = 1000
IDLE_LENDER_MS: Final = 1000
"""How long a frame may stand still before it loses the room that was lent beyond what came, where others wait."""

_READ_AHEAD_TASKS: Final = 4

EndpointMaker: TypeAlias = "Callable[[Connection, Loop, Socket, int], Endpoint]"
"""Makes an endpoint of a connection, its loop, a non-blocking socket and the monotonic time in milliseconds."""


@define(eq=False, kw_only=True)
class Loop(ABC):
    """Drives endpoints. Everything in it belongs to the trio thread; completions come from there, too.

    Attributes:
        receiver: Who takes the frames.
        settings: The limits.
        machine: Where its sockets, and what waits for them, come from.
        clock: The machine's: measures idleness.
        has_sendfile: Whether pieces of files are sent by the system.
        now_ms: The monotonic clock, exact to a few milliseconds; kept by `_run_turns`.
        turn_state: What its connections tell it.
        first_listeners: Names of the listeners that go first, the controller's.
        resumed: Endpoints that go on in the next turn without waiting for their sockets.
        frames_count: Frames taken.
        bytes_in: Bytes received.
        bytes_out: Bytes sent.
        malformed_count: Connections closed for breaking the protocol.
        failures_count: Connections closed for our failures.
        refused_count: Connections refused by limits.
        accept_failures_count: Failed accepts.
        busy_seconds: How long the loop did not wait for sockets, but for the turn that runs.
    """

    receiver: FrameReceiver
    settings: NetworkSettings
    machine: Machine
    clock: Clock = attrs.field(init=False)
    has_sendfile: bool = attrs.field(init=False)
    now_ms: int = attrs.field(init=False)
    memory: ReceiveMemory = attrs.field(init=False)
    endpoints: dict[int, Endpoint] = attrs.field(init=False, factory=dict)
    on_room: list[Callable[[], None]] = attrs.field(init=False, factory=list)
    turn_state: Turn = attrs.field(init=False)
    first_listeners: frozenset[str] = attrs.field(init=False)
    resumed: list[Endpoint] = attrs.field(init=False, factory=list)
    frames_count: int = attrs.field(init=False, default=0)
    bytes_in: int = attrs.field(init=False, default=0)
    bytes_out: int = attrs.field(init=False, default=0)
    malformed_count: int = attrs.field(init=False, default=0)
    failures_count: int = attrs.field(init=False, default=0)
    refused_count: int = attrs.field(init=False, default=0)
    accept_failures_count: int = attrs.field(init=False, default=0)
    busy_seconds: float = attrs.field(init=False, default=0.0)
    _started: float = attrs.field(init=False, default=0.0)
    _frames_seen: int = attrs.field(init=False, default=0)
    _is_turn_wanted: bool = attrs.field(init=False, default=False)
    _turns_count: int = attrs.field(init=False, default=0)
    _created_count: int = attrs.field(init=False, default=0)
    _closed_count: int = attrs.field(init=False, default=0)
    _idle_closed_count: int = attrs.field(init=False, default=0)
    _by_address: dict[tuple[bool, str], int] = attrs.field(init=False, factory=dict)
    _by_listener: dict[str, int] = attrs.field(init=False, factory=dict)
    _waiting_for_memory: list[Endpoint] = attrs.field(init=False, factory=list)
    _helps_in_vain: bool = attrs.field(init=False, default=False)
    _paces: Paces = attrs.field(init=False, factory=Paces)
    _next_connection_id: int = attrs.field(init=False, default=0)
    _became_empty: trio.Event | None = attrs.field(init=False, default=None)
    _read_ahead_sender: trio.MemorySendChannel[tuple[Endpoint, SliceProgress]] = attrs.field(init=False)
    _read_ahead_receiver: trio.MemoryReceiveChannel[tuple[Endpoint, SliceProgress]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Set up what depends on the settings."""
        self.clock = self.machine.clock
        self.has_sendfile = HAS_SENDFILE and self.machine.network.is_system
        self.now_ms = self.clock.monotonic_ms()
        self.turn_state = Turn(self.wake)
        self.first_listeners = frozenset(each.name for each in self.settings.listeners if each.goes_first)
        self.memory = ReceiveMemory(self.settings.request_memory_bytes)
        # Bounded by the number of connections: each has one piece under way at most.
        channel = trio.open_memory_channel[tuple[Endpoint, SliceProgress]](math.inf)
        self._read_ahead_sender, self._read_ahead_receiver = channel

    # -- what the two loops do differently ---------------------------------------------------------------------------

    @abstractmethod
    def watch(self, endpoint: Endpoint, interest: int) -> None:
        """Watch the endpoint's socket for `READ`, `WRITE`, both or (0) hang-ups only."""

    @abstractmethod
    def wake(self) -> None:
        """Have a turn made soon; called between turns."""

    def postpone(self, endpoint: Endpoint) -> bool:
        """Say whether the rest of a frame is to be received later in this turn, or in one of the next."""
        return False

    def _flush(self, dirty: list[Driver]) -> None:
        """Flush all of `dirty`, to which others may be added meanwhile."""
        for endpoint in dirty:
            endpoint.flush()

    @abstractmethod
    def watch_listener(self, listening: ListeningSocket, on_readable: Callable[[], None]) -> None:
        """Call `on_readable` while clients wait at `listening`."""

    @abstractmethod
    def pause_listener(self, listening: ListeningSocket, is_paused: bool) -> None:
        """Stop calling for a while, or go on."""

    @abstractmethod
    def unwatch_listener(self, listening: ListeningSocket) -> None:
        """Stop calling: the socket is about to be closed."""

    @abstractmethod
    def _attach(self, endpoint: Endpoint) -> None:
        """Begin to watch a new endpoint."""

    @abstractmethod
    def _detach(self, endpoint: Endpoint) -> None:
        """Stop watching an endpoint that is about to be closed."""

    @abstractmethod
    async def _run_turns(self, nursery: trio.Nursery, task_status: trio.TaskStatus[None]) -> None:
        """Make turns until cancelled; `nursery` is the loop's own, for the tasks of its connections, if it has any."""

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; then every connection is closed at once."""
        self._started = trio.current_time()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._sweep_for_ever)
                limiter = trio.CapacityLimiter(_READ_AHEAD_TASKS)
                for _ in range(_READ_AHEAD_TASKS):
                    nursery.start_soon(self._read_ahead_for_ever, limiter)
                await self._run_turns(nursery, task_status)
        finally:
            for endpoint in list(self.endpoints.values()):
                self.close(endpoint, "the broker stops")

    def begin_turn(self) -> None:
        """Begin a turn: what gets dirty from here on is flushed by `finish_turn`."""
        self.turn_state.is_active = True
        if self.resumed:
            resumed, self.resumed = self.resumed, []
            for endpoint in resumed:
                endpoint.take_more()
                endpoint.connection.mark_dirty()

    def finish_turn(self) -> None:
        """End a turn: tell the receiver if it got frames or wants it, flush, and use memory again."""
        if self.frames_count != self._frames_seen or self._is_turn_wanted:
            self._frames_seen = self.frames_count
            self._is_turn_wanted = False
            self._turns_count += 1
            try:
                self.receiver.turn_ended()
            except Exception:
                self._fail_turn()
        # Flushing may make others dirty (a connection's end completes what waits elsewhere): they go on in this turn.
        turn_state = self.turn_state
        dirty = turn_state.dirty
        if dirty:
            self._flush(dirty)
            dirty.clear()
        turn_state.is_active = False
        if self._is_turn_wanted:
            self.wake()
        memory = self.memory
        if memory.returned or memory.has_room_again:
            memory.has_room_again = False
            memory.reclaim()
            self._helps_in_vain = False
            if self._waiting_for_memory:
                self._retry_memory()
        elif self._waiting_for_memory and memory.is_stuck and not self._helps_in_vain:
            self._retry_memory()

    def _fail_turn(self) -> None:
        """Close whom an answer is owed: nobody knows any more which of them would get one."""
        _log.exception("ending a turn failed unexpectedly; closing all connections that wait for an answer")
        for endpoint in list(self.endpoints.values()):
            if endpoint.connection.slots:
                self.failures_count += 1
                self.close(endpoint, "internal failure")

    def want_turn(self) -> None:
        """Have the receiver's `turn_ended` called soon, though no frame came."""
        self._is_turn_wanted = True
        if not self.turn_state.is_active:
            self.wake()

    def resume(self, endpoint: Endpoint) -> None:
        """Let the endpoint go on in the next turn without waiting for its socket."""
        self.resumed.append(endpoint)
        if not self.turn_state.is_active:
            self.wake()

    # -- memory ------------------------------------------------------------------------------------------------------

    def wait_for_memory(self, endpoint: Endpoint) -> None:
        """Leave the endpoint unread until blocks are given back."""
        self.watch(endpoint, endpoint.interest & ~READ)
        self._waiting_for_memory.append(endpoint)

    def _retry_memory(self) -> None:
        waiting, self._waiting_for_memory = self._waiting_for_memory, []
        for index, endpoint in enumerate(waiting):
            if not endpoint.connection.is_open:
                continue
            if not endpoint.connection.retry_memory():
                self._waiting_for_memory += waiting[index:]
                break
            self._read_again(endpoint)
        if self._waiting_for_memory and self.memory.is_stuck:
            self._help_one_of_the_stuck()

    def _help_one_of_the_stuck(self) -> None:
        """Let one have what it needs: each holds what the others wait for, and none would ever give it back.

        Where nobody can be helped all were looked at: not in every turn, but when memory was given back, and once in
        a sweep.
        """
        for index, endpoint in enumerate(self._waiting_for_memory):
            if endpoint.connection.waits_for_memory and endpoint.connection.retry_memory(is_beyond_limit=True):
                del self._waiting_for_memory[index]
                self._read_again(endpoint)
                self._helps_in_vain = False
                return
        self._helps_in_vain = True

    def _read_again(self, endpoint: Endpoint) -> None:
        """Go on with an endpoint that waited for memory."""
        endpoint.memory_granted(self.clock.monotonic_ms())
        if endpoint.is_write_blocked:
            return  # it waits for room to send, and reads again once its answer has left
        self.watch(endpoint, READ)
        if endpoint.has_input:
            self.resume(endpoint)

    # -- reading ahead -----------------------------------------------------------------------------------------------

    def read_ahead(self, endpoint: Endpoint, progress: SliceProgress) -> None:
        """Have a thread read the next piece of a file that is not in memory; the endpoint goes on afterwards."""
        self._read_ahead_sender.send_nowait((endpoint, progress))

    async def _read_ahead_for_ever(self, limiter: trio.CapacityLimiter) -> None:
        run_sync = self.machine.threads.run_sync
        async for endpoint, progress in self._read_ahead_receiver:
            failure: OSError | None = None
            try:
                await run_sync(read_into_cache, progress, abandon_on_cancel=True, limiter=limiter)
            except OSError as error:
                failure = error
            endpoint.read_ahead_done(failure)

    # -- connections -------------------------------------------------------------------------------------------------

    @property
    def counted(self) -> int:
        """How many connections count against `max.connections`: all but those of controllers' listeners."""
        return len(self.endpoints) - sum(self._by_listener.get(name, 0) for name in self.first_listeners)

    def has_room(self, listener: ListenerSettings) -> bool:
        """Return whether another connection may be taken by `listener`.

        Whatever clients hold, nodes reach each other: followers would fall behind, and nobody could raise the limit.

        *Source:* KIP-402; Kafka's controllers have a `SocketServer` of their own, with counts of its own.
        """
        is_free = listener.goes_first or listener.is_protected
        return is_free or self.counted < self.settings.connections_max

    @property
    def is_beyond_limit(self) -> bool:
        """Whether there are more connections than `max.connections`."""
        return self.counted > self.settings.connections_max

    def close_a_client(self) -> None:
        """Close a client for a broker that came beyond the limit: of those owed no answer the longest silent."""
        spared = {each.name for each in self.settings.listeners if each.goes_first or each.is_protected}
        clients = [each for each in self.endpoints.values() if each.connection.listener_name not in spared]
        if clients:
            chosen = min(clients, key=lambda each: (bool(each.connection.slots), _silent_from_ms(each)))
            _log.info("closing %r for a broker: max.connections is reached", chosen.connection)
            self.close(chosen, "a broker came, and max.connections was reached")

    def is_address_full(self, listener: ListenerSettings, host: str) -> bool:
        """Return whether `host` has as many connections as it may have; by controllers' listeners it has others."""
        limit = self.settings.connections_per_ip_overrides.get(host, self.settings.connections_per_ip_max)
        return self._by_address.get((listener.goes_first, host), 0) >= limit

    def adopt(
        self,
        client: Socket,
        *,
        listener_name: str,
        client_host: str,
        client_port: int,
        frame_limit_bytes: int,
        make_endpoint: EndpointMaker,
    ) -> Endpoint:
        """Take a connected, non-blocking socket into the loop, which owns it from now on."""
        self._next_connection_id += 1
        connection = Connection(
            connection_id=self._next_connection_id,
            listener_name=listener_name,
            client_host=client_host,
            client_port=client_port,
            frame_limit_bytes=frame_limit_bytes,
            turn=self.turn_state,
            memory=self.memory,
        )
        endpoint = make_endpoint(connection, self, client, self.clock.monotonic_ms())
        connection.driver = endpoint
        self.endpoints[connection.connection_id] = endpoint
        self._created_count += 1
        address = listener_name in self.first_listeners, client_host
        self._by_address[address] = self._by_address.get(address, 0) + 1
        self._by_listener[listener_name] = self._by_listener.get(listener_name, 0) + 1
        try:
            self.receiver.connection_opened(connection)
        except Exception:
            _log.exception("meeting %r failed unexpectedly", connection)
        self._attach(endpoint)
        return endpoint

    def close(self, endpoint: Endpoint, reason: str) -> None:
        """Close the connection at once and tell the receiver; nothing happens the second time."""
        connection = endpoint.connection
        if not connection.is_open:
            return
        _log.debug("closing %r: %s", connection, reason)
        connection.close_reason = reason
        connection.closed()
        self._detach(endpoint)
        endpoint.close_socket()
        del self.endpoints[connection.connection_id]
        self._closed_count += 1
        self._by_listener[connection.listener_name] -= 1
        address = connection.listener_name in self.first_listeners, connection.client_host
        count = self._by_address.pop(address) - 1
        if count:
            self._by_address[address] = count
        try:
            self.receiver.connection_closed(connection)
        except Exception:
            _log.exception("forgetting %r failed unexpectedly", connection)
        for call in self.on_room:
            call()
        if not self.endpoints and self._became_empty is not None:
            self._became_empty.set()

    async def drain(self, end_waits: Callable[[], None]) -> None:
        """Take no further frames, let what is in flight be answered, and return when all connections are closed.

        The listeners must be closed before. If it is cancelled (its caller's deadline), the rest is closed by `run`.

        Args:
            end_waits: Called once no further frame is taken, before the wait.
        """
        for endpoint in list(self.endpoints.values()):
            endpoint.connection.close("the broker stops")
        end_waits()
        if self.endpoints:
            self._became_empty = trio.Event()
            await self._became_empty.wait()

    # -- time-outs ---------------------------------------------------------------------------------------------------

    async def _sweep_for_ever(self) -> None:
        idle_ms_max = self.settings.connections_idle_ms_max
        period_ms = SWEEP_MS_MAX
        if idle_ms_max > 0:
            period_ms = max(1, min(period_ms, idle_ms_max // 4))
        while True:
            await trio.sleep(until_beat_ms(self.clock.monotonic_ms(), period_ms) / 1000)
            self.sweep(self.clock.monotonic_ms())

    def sweep(self, now_ms: int) -> None:
        """Close connections that were idle for too long, or stall or creep while others wait for their memory."""
        is_memory_short = bool(self._waiting_for_memory)
        if is_memory_short:
            self._paces.begin_look()
        else:
            self._paces.forget()
        for endpoint in list(self.endpoints.values()):
            reason = self._reason_to_close(endpoint, now_ms)
            if not reason and is_memory_short:
                reason = self._reason_to_free(endpoint, now_ms)
            # Who has sent more, and is not read because memory is short, waits for its turn.
            if reason and not (endpoint.connection.waits_for_memory and endpoint.has_unread()):
                self._idle_closed_count += 1
                self.close(endpoint, reason)
        if not self.memory.block_bytes:
            self.memory.drop_spares()
        if self._waiting_for_memory:
            self._retry_memory()

    def _reason_to_close(self, endpoint: Endpoint, now_ms: int) -> str:
        """Return why a connection is to be closed, whoever waits; empty if it is not."""
        idle_ms_max = self.settings.connections_idle_ms_max
        if endpoint.is_expired(now_ms):
            return "the TLS handshake took too long"
        if endpoint.connection.slots:
            endpoint.owed_ms = now_ms
        elif 0 <= idle_ms_max <= now_ms - _silent_from_ms(endpoint):
            return "idle for too long"
        return ""

    def _reason_to_free(self, endpoint: Endpoint, now_ms: int) -> str:
        """Have who stalls or creeps give back the room of its frame; return why it is to be closed, empty if it is not.

        Once it may wait for room anew; who does so again has to go.
        """
        connection, quiet_ms = endpoint.connection, now_ms - endpoint.last_active_ms
        if quiet_ms >= STALL_MS_MAX and connection.begun_block_bytes:
            return "a request that stalls while others wait for its memory"
        is_slow = self._paces.is_too_slow(connection, now_ms)
        is_freed = (is_slow or quiet_ms >= IDLE_LENDER_MS) and connection.give_room_back()
        if is_freed:
            self.wait_for_memory(endpoint)
        return endpoint.stalled(now_ms) if is_freed or is_slow else ""

    # -- statistics --------------------------------------------------------------------------------------------------

    def statistics(self) -> NetworkStatistics:
        """Return the counters."""
        return NetworkStatistics(
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            requests_count=self.frames_count,
            turns_count=self._turns_count,
            connections_count=len(self.endpoints),
            connections_created_count=self._created_count,
            connections_closed_count=self._closed_count,
            connections_refused_count=self.refused_count,
            connections_idle_closed_count=self._idle_closed_count,
            connections_by_listener=dict(self._by_listener),
            malformed_count=self.malformed_count,
            failures_count=self.failures_count,
            accept_failures_count=self.accept_failures_count,
            block_bytes=self.memory.block_bytes + self.memory.owed_bytes,
            served_s=trio.current_time() - self._started,
            busy_s=self.busy_seconds,
        )


def _silent_from_ms(endpoint: Endpoint) -> int:
    """Return since when a connection is idle: no bytes have moved, and no answer was owed."""
    return max(endpoint.last_active_ms, endpoint.owed_ms)
