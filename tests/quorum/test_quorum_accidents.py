"""Whatever dies, is cut off or loses power: one leader an epoch, what is committed stays, and it goes on afterwards.

More worlds than the gate runs: `python -m tests.quorum.test_quorum_accidents FIRST COUNT`.
"""

from __future__ import annotations

import random
import sys
from pathlib import PurePath

import pytest
import trio

from odradek.kernel.errors import KafkaError
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.quorum.quorum_log import QuorumLog
from odradek.testing.faults import PowerLoss
from tests.quorum.quorum_world import Controller, Quorum, append, in_quorum, values

SEEDS = (1, 3, 5)
ACCIDENTS = 12
HEALED_S = 20
STEPS_MAX = 16
STEPS_MIN = 8


class Watched:
    """What must hold, as all who live are looked at."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._committed: dict[int, tuple[int, bytes]] = {}
        self._seen: dict[QuorumLog, int] = {}
        self._leaders: dict[int, tuple[int, int]] = {}
        self.acknowledged: list[bytes] = []

    async def run(self) -> None:
        """Look at every change."""
        while True:
            self.look()
            await trio.sleep(0.01)

    def look(self) -> None:
        """Look now."""
        for log in self._quorum.logs.values():
            if log.leads(log.leader_epoch):
                known = self._leaders.setdefault(log.leader_epoch, (log.node_id, id(log)))
                assert known == (log.node_id, id(log)), f"epoch {log.leader_epoch} is led by {known} and {log!r}"
            seen = self._seen.get(log, log.start_offset)
            assert log.start_offset <= log.high_watermark <= log.flushed_offset <= log.end_offset, f"{log!r}"
            if log.high_watermark > seen:
                self._look_at(log, seen)
                self._seen[log] = log.high_watermark

    def _look_at(self, log: QuorumLog, start_offset: int) -> None:
        for record in log.records(start_offset):
            if record.offset >= log.high_watermark:
                break
            found = (record.epoch, record.value)
            assert self._committed.setdefault(record.offset, found) == found, f"{log!r} has other records committed"


async def _write(quorum: Quorum, watched: Watched) -> None:
    """Append wherever somebody leads."""
    number = 0
    while True:
        for log in list(quorum.logs.values()):
            if log.leads(log.leader_epoch):
                number += 1
                value = b"%d in epoch %d" % (number, log.leader_epoch)
                try:
                    with trio.move_on_after(0.1):
                        await append(log, value)
                        watched.acknowledged.append(value)
                except KafkaError:
                    await trio.sleep(0.001)
        await trio.sleep(0.005)


async def _commit(quorum: Quorum, value: bytes) -> None:
    """Have a record committed by whoever leads, within a bound; it may be there twice."""
    with trio.fail_after(HEALED_S):
        while True:
            try:
                await append(await quorum.leader(), value)
            except KafkaError:  # it was about to lead no more
                continue
            return


async def _suffer(quorum: Quorum, source: random.Random) -> None:
    controllers = list(quorum.controllers.values())
    for _ in range(ACCIDENTS):
        victim = source.choice(controllers)
        accident = source.choice(("kill", "power", "isolate", "cut", "heal", "give up"))
        if accident == "kill":
            victim.crash()
        elif accident == "power":
            victim.crash(source.choice(list(PowerLoss)))
        elif accident == "isolate":
            quorum.isolate(victim.node_id)
        elif accident == "cut":
            quorum.cut.add((victim.node_id, source.choice(controllers).node_id))
        elif accident == "heal":
            quorum.cut.clear()
        elif victim.log is not None and victim.log.leads(victim.log.leader_epoch):
            await victim.log.give_up()
        await trio.sleep(source.choice((0.001, 0.01, 0.1, 0.5, 2)))
        for each in controllers:
            if each.log is None and each.host.process is None and source.random() < 0.6:
                each.start()


async def accidents(quorum: Quorum, source: random.Random) -> None:
    """Let accidents happen, then none, and see that everything is as it must be."""
    watched = Watched(quorum)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watched.run)
        nursery.start_soon(_write, quorum, watched)
        await _suffer(quorum, source)
        nursery.cancel_scope.cancel()
    quorum.cut.clear()
    for each in quorum.controllers.values():
        assert each.failure is None, f"controller {each.node_id} ended by {each.failure!r}"
        if each.host.process is None:
            each.start()
    await quorum.until(lambda: len(quorum.logs) == len(quorum.controllers))
    await _commit(quorum, b"after all")
    with trio.fail_after(HEALED_S):
        leader = await quorum.settled()
    watched.look()
    kept = values(leader)
    assert all(values(log) == kept for log in quorum.logs.values()), "all have the same"
    missing = [value for value in watched.acknowledged if value not in kept]
    assert not missing, f"acknowledged and lost: {missing}"
    assert kept[-1] == b"after all"


def run_seed(seed: int) -> None:
    """Run one world: three voters, or five."""
    source = random.Random(seed)
    voters = (1, 2, 3) if seed % 3 else (1, 2, 3, 4, 5)

    async def main(quorum: Quorum) -> None:
        await accidents(quorum, source)

    in_quorum(main, *voters, seed=seed, static=seed % 4 == 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_committed_stays_and_each_epoch_has_one_leader(seed: int) -> None:
    run_seed(seed)


# ---------------------------------------------------------------------------------------- at every step of a disk


async def _dies_at(quorum: Quorum, victim: Controller, step: int, style: PowerLoss | None) -> bool:
    """Start a voter that dies at this step of what it keeps or appends, and again; return whether it came to that."""
    disk, left = victim.host.disk, step

    def die(path: PurePath) -> None:
        nonlocal left
        if path.name.startswith("quorum-state") or (victim.log is not None and path.suffix == ".log"):
            left -= 1
            if left == 0:
                victim.crash(style)

    disk.before_operation = die
    victim.start()
    with trio.move_on_after(1):
        await quorum.until(lambda: victim.host.process is None)
    disk.before_operation = lambda _path: None
    has_died = victim.host.process is None
    if has_died:
        victim.start()
    return has_died


@pytest.mark.parametrize("style", [None, PowerLoss.LOST, PowerLoss.TORN], ids=["killed", "lost", "torn"])
def test_a_voter_may_die_at_every_step_of_an_election(style: PowerLoss | None) -> None:
    """Two live, the third does not: they have to elect and to commit together, each step of it on both disks."""

    async def main(quorum: Quorum) -> tuple[int, list[bytes]]:
        first, second, third = quorum.controllers.values()
        await quorum.settled()
        third.crash()
        watched = Watched(quorum)
        died = 0
        for step in range(1, STEPS_MAX):
            victim, other = (first, second) if step % 2 else (second, first)
            for each in (victim, other):
                each.crash()
            other.start()
            died += await _dies_at(quorum, victim, step, style)
            assert victim.failure is None, f"controller {victim.node_id} ended by {victim.failure!r}"
            await _commit(quorum, b"%d" % step)
            watched.look()
        third.start()
        await quorum.until(lambda: len(quorum.logs) == len(quorum.controllers))
        with trio.fail_after(HEALED_S):
            leader = await quorum.settled()
        watched.look()
        return died, values(leader)

    died, kept = in_quorum(main)

    assert sorted(set(map(int, kept))) == list(range(1, STEPS_MAX))
    assert died >= STEPS_MIN


def test_a_leader_that_was_left_behind_commits_nothing_in_the_epoch_of_another() -> None:
    async def main(quorum: Quorum) -> list[list[bytes]]:
        first = await quorum.settled()
        quorum.isolate(first.node_id)
        run_at_once(first.append_in_steps([b"lost"], 0))
        second = await quorum.leader(but=first.node_id)
        await append(second, b"one")
        quorum.controllers[second.node_id].crash()
        quorum.cut.clear()  # who was left behind, and one who has what was committed
        await _commit(quorum, b"two")
        await quorum.settled()
        return [values(log) for log in quorum.logs.values()]

    assert in_quorum(main) == [[b"one", b"two"]] * 2


if __name__ == "__main__":
    begin, count = map(int, sys.argv[1:])
    for number in range(begin, begin + count):
        try:
            run_seed(number)
        except BaseException:
            print(f"seed {number}", flush=True)  # noqa: T201 - what somebody who runs this by hand wants to know
            raise
