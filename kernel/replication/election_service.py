"""Shell: one election that votes, run: time passes for it, what it decides is carried out, its messages come and go.

    step(input) ─┐                       ┌─> hard state, control records: on a worker thread
    tick ────────┼─> election ──> walk ──┼─> the replica's role and high watermark
    ask(request) ┘     (Ready)           └─> messages to peers; answers to who asked

One task walks, so what an election decides is carried out in its order, each thing when what it rests on is durable.
While a disk is waited for, inputs are taken all the same: what follows from them comes behind.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from ..contracts.election import FetchEnded, PeerMessage
from ..errors import ErrorCode, KafkaError
from ..partitions.election_driver import EFFECTS_MAX, endless, walk
from ..partitions.voting import is_hurried
from ..purgatory.timing_wheel import until_beat_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..contracts.election import Election, ElectionInput, Ready
    from ..machine.clock import Clock
    from ..machine.threads import Workers
    from ..partitions.election_driver import ElectedReplica, Keeper
    from ..wire.message import Message

TICK_MS: Final = 25
"""How often time passes: a small part of what voters wait for each other at the least (50 ms)."""
CALM_TICK_MS: Final = 250
"""How often where a leader leads and is followed: that a process wakes up costs more than what it does then."""
CALM_TICKS_MIN: Final = 8
"""So often at the least while a voter waits for its leader: a small part of the time-outs that end the calm."""
UNREST_MS: Final = 3000
"""So long after anything but an answered fetch, it is not calm: longer than an election takes."""


class _Asked:
    """A request that the election is to answer."""

    __slots__ = ("done", "response")

    def __init__(self) -> None:
        self.done = trio.Event()
        self.response: Message | None = None


class ElectionService:
    """Life: made, inputs, `run` as a task. Owned by the replica; any task of its run may call.

    Effects wait for `run`; who asks waits for them. After `run` nothing is answered any more.
    """

    def __init__(
        self,
        election: Election,
        replica: ElectedReplica,
        keeper: Keeper,
        *,
        clock: Clock,
        worker: Workers,
        fetch_timeout_ms: int,
    ) -> None:
        """Make it.

        Args:
            election: Which decides.
            replica: Which does it.
            keeper: Keeps and appends.
            clock: The monotonic one.
            worker: The thread that keeps; nobody's else, for votes wait for it.
            fetch_timeout_ms: How long a voter waits for its leader.
        """
        self._election, self._replica, self._keeper = election, replica, keeper
        self._clock, self._worker = clock, worker
        self._calm_tick_ms = max(TICK_MS, min(CALM_TICK_MS, fetch_timeout_ms // CALM_TICKS_MIN))
        self._asked: dict[int, _Asked] = {}
        self._correlation_id = 0
        self._effects_left = EFFECTS_MAX
        self._woken = trio.Event()
        self._restless_ms = clock.monotonic_ms()
        self._has_ended = False

    def __repr__(self) -> str:
        return f"ElectionService({self._election!r}, {len(self._asked)} asked)"

    def step(self, event: ElectionInput) -> None:
        """Have the election take an input; what follows from it is carried out by `run`."""
        self._effects_left = EFFECTS_MAX
        if type(event) is not FetchEnded:
            self._restless_ms = self._clock.monotonic_ms()
            self._woken.set()
        self._election.step(event)
        self.wake()

    def wake(self) -> None:
        """Have carried out what one of the hot calls may have decided."""
        if self._election.ready() is not None:
            self._woken.set()

    async def ask(self, broker_id: int, request: Message) -> Message:
        """Have the election take a request of its protocol, and return its answer when all that it rests on is durable.

        Cancelled: what the request changed is changed.

        Args:
            broker_id: Who asks, -1 for a client.
            request: Vote, BeginQuorumEpoch, EndQuorumEpoch, DescribeQuorum, or a change of voters.

        Raises:
            KafkaError: The service has ended.
        """
        self._correlation_id += 1
        correlation_id, asked = self._correlation_id, _Asked()
        if not self._has_ended:
            self._asked[correlation_id] = asked
            try:
                self.step(PeerMessage(broker_id, request, correlation_id))
                await asked.done.wait()
            finally:
                self._asked.pop(correlation_id, None)
        if asked.response is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the election of this replica has ended")
        return asked.response

    async def run(
        self,
        send: Callable[[Sequence[PeerMessage]], object],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Let time pass and carry out what is decided, until cancelled; what is being kept then is kept.

        Args:
            send: Sends messages to peers, and does not wait for that; some may be lost.
            task_status: Told when it runs.

        Raises:
            StorageError: What is to be kept cannot be: the replica is to be given up.
            PluginError: The election wants what cannot be done, or its effects never end.
        """
        task_status.started()
        try:
            while True:
                self._woken = trio.Event()
                self._effects_left = EFFECTS_MAX
                now_ms = self._clock.monotonic_ms()
                self._election.tick(now_ms)
                if self._election.ready() is not None or is_hurried(self._election):
                    self._restless_ms = now_ms
                await self._carry_out(send)
                is_calm = now_ms - self._restless_ms >= UNREST_MS
                pause_ms = until_beat_ms(now_ms, self._calm_tick_ms) if is_calm else TICK_MS
                with trio.move_on_after(pause_ms / 1000):
                    await self._woken.wait()
        finally:
            self._has_ended = True
            for asked in self._asked.values():
                asked.done.set()

    async def _carry_out(self, send: Callable[[Sequence[PeerMessage]], object]) -> None:
        while (ready := self._election.ready()) is not None:
            if self._effects_left == 0:
                raise endless(self._election)
            self._effects_left -= 1
            await self._walk(ready, send)

    async def _walk(self, ready: Ready, send: Callable[[Sequence[PeerMessage]], object]) -> None:
        deliver = partial(self._deliver, send)
        for work in walk(ready, self._election, self._replica, keeper=self._keeper, send=deliver):
            await self._worker.do(work)

    def _deliver(self, send: Callable[[Sequence[PeerMessage]], object], messages: Sequence[PeerMessage]) -> None:
        """Give answers to who asked here, and send the rest; an answer that nobody waits for any more is dropped."""
        for message in messages:
            if message.correlation_id and (asked := self._asked.get(message.correlation_id)) is not None:
                asked.response = message.message
                asked.done.set()
        if to_peers := [message for message in messages if not message.correlation_id]:
            send(to_peers)
