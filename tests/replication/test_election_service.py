"""The task that runs an election: time passes, disks are waited for, messages go out, who asks is answered at last."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, cast

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.disk_work import DiskWork
from odradek.kernel.contracts.election import Election, ElectionInput, FetchEnded, PeerMessage, PeerRefused, Ready, Role
from odradek.kernel.errors import KafkaError, PluginError, StorageError
from odradek.kernel.machine.clock import TrioClock
from odradek.kernel.machine.threads import Threads, Workers
from odradek.kernel.replication.election_service import (
    CALM_TICK_MS,
    CALM_TICKS_MIN,
    TICK_MS,
    UNREST_MS,
    ElectionService,
)
from odradek.kernel.wire.messages.api_52_vote import VoteRequest, VoteResponse


class SlowDisk:
    """Threads on which works are done when the test says so."""

    def __init__(self) -> None:
        self.may_work = trio.Event()

    async def run_sync(self, function: Callable[..., Any], *args: Any, **_settings: Any) -> Any:
        with trio.CancelScope(shield=True):
            await self.may_work.wait()
        return function(*args)


class Keeping:
    """A work that keeps something, unless the disk fails."""

    def __init__(self, told: list[object], hard_state: bytes) -> None:
        self._told, self._hard_state = told, hard_state

    def run(self) -> None:
        """Do nothing: it is told when it is finished."""

    def finish(self, error: Exception | None) -> None:
        if self._hard_state == b"too much":
            raise StorageError("no space")
        self._told.append(self._hard_state)


class Replica:
    """A replica, its disk and its peers, which note what they are told."""

    flushed_offset = 0

    def __init__(self) -> None:
        self.told: list[object] = []

    def take_role(self, role: Role, leader_id: int, leader_epoch: int) -> None:
        self.told.append(role)

    def raise_high_watermark(self, offset: int) -> None:
        self.told.append(offset)

    def begin_keep(self, hard_state: bytes) -> DiskWork:
        return Keeping(self.told, hard_state)

    def begin_append(self, records: Sequence[object], leader_epoch: int) -> DiskWork:
        raise NotImplementedError

    def send(self, messages: Sequence[PeerMessage]) -> None:
        self.told += [f"to {each.broker_id}" for each in messages]


class Answering:
    """An election that keeps a vote, and says so, whenever it is asked for one."""

    def __init__(self) -> None:
        self.ticks: list[int] = []
        self.left: list[Ready] = []

    def tick(self, now_ms: int) -> None:
        self.ticks.append(now_ms)

    def step(self, event: ElectionInput) -> None:
        if isinstance(event, PeerMessage):
            answer = PeerMessage(event.broker_id, VoteResponse(), event.correlation_id)
            self.left.append(Ready(hard_state=b"vote for %d" % event.broker_id, messages=(answer,)))

    def ready(self) -> Ready | None:
        return self.left[0] if self.left else None

    def advance(self, ready: Ready) -> None:
        assert ready is self.left.pop(0)


class Silent(Answering):
    """An election that answers nothing."""

    def step(self, event: ElectionInput) -> None:
        """Take nothing."""


class Restless(Answering):
    """An election that has something to do for ever."""

    def ready(self) -> Ready | None:
        return Ready(high_watermark=1)

    def advance(self, ready: Ready) -> None:
        """Have it still."""


class Rig:
    """A service with what it acts on."""

    def __init__(self, election: Answering) -> None:
        self.election, self.replica, self.disk = election, Replica(), SlowDisk()
        self.scope = trio.CancelScope()
        self.service = ElectionService(
            cast("Election", election),
            self.replica,
            self.replica,
            clock=TrioClock(),
            worker=Workers(cast("Threads", self.disk), 1),
            fetch_timeout_ms=CALM_TICK_MS * CALM_TICKS_MIN,
        )

    async def serve(self) -> None:
        """Run the service until the scope is cancelled."""
        with self.scope:
            await self.service.run(self.replica.send)


@asynccontextmanager
async def running(election: Answering | None = None, *, is_quick: bool = True) -> AsyncIterator[Rig]:
    rig = Rig(election or Answering())
    if is_quick:
        rig.disk.may_work.set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.serve)
        await trio.testing.wait_all_tasks_blocked()
        yield rig
        rig.disk.may_work.set()
        nursery.cancel_scope.cancel()


def run(body: Callable[[], Awaitable[None]]) -> None:
    """Run a test on virtual time."""
    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))


def test_time_passes_for_an_election_that_has_nothing_to_do() -> None:
    async def body() -> None:
        async with running() as rig:
            await trio.sleep(10 * TICK_MS / 1000)
            ticks = rig.election.ticks

        assert 10 <= len(ticks) <= 12
        assert all(0 < later - earlier <= TICK_MS for earlier, later in pairwise(ticks))

    run(body)


def test_time_passes_slower_where_only_fetches_are_answered_until_something_else_comes() -> None:
    async def body() -> None:
        async with running() as rig:
            await trio.sleep(UNREST_MS / 1000)
            rig.election.ticks.clear()
            for _ in range(10):
                await trio.sleep(CALM_TICK_MS / 1000)
                rig.service.step(FetchEnded(2))
            calm = list(rig.election.ticks)
            rig.election.ticks.clear()
            rig.service.step(PeerRefused(2))
            await trio.sleep(10 * TICK_MS / 1000)
            restless = rig.election.ticks

        assert 9 <= len(calm) <= 11
        assert 10 <= len(restless) <= 13

    run(body)


def test_an_election_that_waits_for_its_turn_hears_of_time_often() -> None:
    class Hurried(Answering):
        """An election whose leader is gone: its own turn to stand comes soon."""

        is_hurried = False

    async def body() -> None:
        election = Hurried()
        async with running(election) as rig:
            await trio.sleep(UNREST_MS / 1000)
            election.is_hurried = True
            await trio.sleep(CALM_TICK_MS / 1000)
            election.ticks.clear()
            await trio.sleep(10 * TICK_MS / 1000)
            hurried = list(rig.election.ticks)

        assert 10 <= len(hurried) <= 12

    run(body)


def test_who_asks_is_answered_when_what_it_rests_on_is_kept() -> None:
    async def body() -> None:
        async with running(is_quick=False) as rig, trio.open_nursery() as nursery:
            answers: list[object] = []

            async def ask() -> None:
                answers.append(await rig.service.ask(2, VoteRequest()))

            nursery.start_soon(ask)
            await trio.sleep(1)
            before = list(answers)
            rig.disk.may_work.set()
            await trio.sleep(1)

            assert (before, answers, rig.replica.told) == ([], [VoteResponse()], [b"vote for 2"])

    run(body)


def test_what_is_being_kept_when_the_service_ends_is_kept_and_carried_out() -> None:
    async def body() -> None:
        async with running(is_quick=False) as rig, trio.open_nursery() as nursery:
            nursery.start_soon(rig.service.ask, 2, VoteRequest())
            await trio.sleep(1)
            rig.scope.cancel()
            await trio.sleep(1)
            rig.disk.may_work.set()

        assert rig.replica.told == [b"vote for 2"]

    run(body)


def test_what_comes_while_a_disk_is_waited_for_is_carried_out_behind() -> None:
    async def body() -> None:
        async with running(is_quick=False) as rig:
            rig.election.left.append(Ready(hard_state=b"first", role=Role.CANDIDATE, leader_epoch=1))
            rig.service.wake()
            await trio.sleep(1)
            rig.service.step(PeerMessage(3, VoteRequest()))
            await trio.sleep(1)
            before = list(rig.replica.told)
            rig.disk.may_work.set()
            await trio.sleep(1)

            assert (before, rig.replica.told) == ([], [b"first", Role.CANDIDATE, b"vote for 3", "to 3"])

    run(body)


def test_an_answer_that_nobody_waits_for_any_more_goes_nowhere() -> None:
    async def body() -> None:
        async with running(is_quick=False) as rig:
            with trio.move_on_after(1):
                await rig.service.ask(2, VoteRequest())
            rig.disk.may_work.set()
            await trio.sleep(1)

            assert rig.replica.told == [b"vote for 2"]

    run(body)


def test_who_waits_when_the_service_ends_is_told_and_so_is_who_asks_later() -> None:
    async def body() -> None:
        told: list[str] = []
        rig = Rig(Silent())

        async def ask() -> None:
            try:
                await rig.service.ask(2, VoteRequest())
            except KafkaError as error:
                told.append(error.code.name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.serve)
            nursery.start_soon(ask)
            await trio.sleep(1)
            rig.scope.cancel()
        await ask()

        assert told == ["BROKER_NOT_AVAILABLE"] * 2

    run(body)


@pytest.mark.parametrize(
    ("election", "error", "told"),
    [(Answering(), StorageError, "no space"), (Restless(), PluginError, "effects that never end")],
    ids=["disk", "restless"],
)
def test_what_cannot_be_carried_out_ends_the_service(election: Answering, error: type[Exception], told: str) -> None:
    election.left.append(Ready(hard_state=b"too much", role=Role.LEADER, leader_epoch=1))

    async def body() -> None:
        rig = Rig(election)
        rig.disk.may_work.set()
        with pytest.raises(error, match=told):
            await rig.service.run(rig.replica.send)

        assert Role.LEADER not in rig.replica.told

    run(body)
