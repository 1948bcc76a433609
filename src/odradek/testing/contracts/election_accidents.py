"""Shell: three replicas, a controller and a producer under a hostile scheduler, all chance from one seed.

Messages are late, lost and doubled, links are cut, metadata is old, clocks go differently, processes end at any step.
`election_ensemble` says what is promised; safety is looked at after every step, liveness when the accidents are over.

.. versionadded:: 0.1
"""

from __future__ import annotations

import random
from enum import Enum
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.contracts.election import IsrChangeEnded, LeadershipGivenUp, PeerRefused

from .election_controller import KitController
from .election_replicas import Entry, KitReplica, Sent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.kernel.contracts.election import ElectionFactory, IsrChange

REPLICAS: Final = (1, 2, 3)
MIN_ISR: Final = 2
STEPS: Final = 400
HEALING_STEPS: Final = 800
UNDER_WAY_MAX: Final = 40
_TICK_MS: Final = 50
_HOPS: Final = 4
"""So often something arrives and is answered while a tick lasts, when nothing is held up."""
_SECOND_MS: Final = 1_000
_PAUSES_MS: Final = (1, 50, 50, 300, 900, 31_000)
"""The last is more than Kafka's default of `replica.lag.time.max.ms`."""


class Crash(Enum):
    """What ends a replica."""

    PROCESS = "process"
    POWER = "power"


class Promise(Enum):
    """What an ensemble promises; see the table of `election_ensemble`."""

    ONE_LEADER = "one leader"
    PREFIX = "prefix"
    COMPLETE_LEADER = "complete leader"
    MATCHING_LOGS = "matching logs"
    ENOUGH_COPIES = "enough copies"
    LEADS_AGAIN = "leads again"
    ALL_HAVE_IT = "all have it"
    GOES_ON = "goes on"


class BrokenPromiseError(AssertionError):
    """A promise did not hold."""

    def __init__(self, promise: Promise, text: str) -> None:
        super().__init__(f"{promise.value}: {text}")
        self.promise = promise


@attrs.frozen
class Broken:
    """A promise that did not hold in a run.

    Attributes:
        seed: Of the run.
        promise: Which.
        text: What was seen.
        trace: What had happened last.
    """

    seed: int
    promise: Promise
    text: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.text}\nwhat had happened last:\n  " + "\n  ".join(self.trace)


class Ensemble:
    """One run. Life: made, `run`."""

    def __init__(
        self,
        factory: ElectionFactory,
        settings: Mapping[str, object],
        crash: Crash,
        seed: int,
        *,
        goes_on_without_one: bool = True,
    ) -> None:
        self._source = source = random.Random(seed)
        self._crash, self._goes_on = crash, goes_on_without_one
        self._controller = KitController(factory, REPLICAS, MIN_ISR)
        self._under_way: list[Sent] = []
        self._asked: list[tuple[int, IsrChange]] = []
        self._answered: list[tuple[int, IsrChangeEnded]] = []
        self._cut: set[tuple[int, int]] = set()
        self._doubtful: set[int] = set()
        self._deaths = source.choice((0.0, 0.01, 0.03))
        self._now_ms = 0
        self._values = 0
        self._leaders: dict[int, int] = {}
        self._committed: list[Entry] = []
        self._written: dict[tuple[int, int], tuple[Entry, ...]] = {}
        self.trace: list[str] = []
        image = self._controller.image
        self.replicas = {
            each: KitReplica(
                each,
                image,
                factory,
                settings,
                random.Random(source.random()),
                self._under_way.append,
                lambda asker, change: self._asked.append((asker, change)),
            )
            for each in REPLICAS
        }
        for each, replica in self.replicas.items():
            replica.start(image.brokers[each].broker_epoch, image, MIN_ISR)
            replica.carry_out()

    # --------------------------------------------------------------------------------------------------- what happens

    def run(self) -> None:
        """Run to the end.

        Raises:
            BrokenPromiseError: Something that was promised did not hold.
        """
        actions: tuple[tuple[Callable[[], None], int], ...] = (
            (self._deliver, 40),
            (self._fetch, 30),
            (self._pass_time, 16),
            (self._append, 14),
            (self._learn, 12),
            (self._reach_controller, 12),
            (self._lose_or_double, 3),
            (self._strike, 3),
            (self._come_back, 5),
            (self._fence, 4),
            (self._cut_off, 1),
            (self._join_up, 2),
            (self._disturb, 2),
        )
        weights = [weight * self._source.choice((1, 1, 2)) for _, weight in actions]
        for action in self._source.choices([action for action, _ in actions], weights, k=STEPS):
            self._note(action.__name__)
            action()
            self._check()
        self._heal()

    def _note(self, text: str) -> None:
        self.trace.append(text.strip("_"))
        del self.trace[:-30]

    def _alive(self) -> list[KitReplica]:
        return [replica for replica in self.replicas.values() if replica.is_alive]

    def _one_alive(self) -> KitReplica | None:
        alive = self._alive()
        return self._source.choice(alive) if alive else None

    def _settle(self, replica: KitReplica) -> None:
        """Have effects carried out; now and then the process dies on the way."""
        dies = self._source.choice(("before", "after")) if self._source.random() < self._deaths else ""
        replica.carry_out(dies=dies)
        if replica.is_alive:
            self._end_doubt(replica)

    def _deliver(self) -> None:
        """Hand over some of what is under way: mostly the oldest, now and then any."""
        for _ in range(self._source.randrange(1, 6)):
            if self._under_way:
                place = 0 if self._source.random() < 0.8 else self._source.randrange(len(self._under_way))
                self._hand_over(self._under_way.pop(place))
        del self._under_way[:-UNDER_WAY_MAX]

    def _hand_over(self, sent: Sent) -> None:
        replica = self.replicas[sent.target]
        if replica.is_alive and (sent.source, sent.target) not in self._cut:
            self._note(f"{sent.source} > {sent.target} {type(sent.body).__name__}")
            replica.receive(sent, self._now_ms)
            self._settle(replica)

    def _fetch(self) -> None:
        for replica in self._alive():
            if self._source.random() < 0.7:
                replica.fetch()

    def _pass_time(self) -> None:
        """Let time pass for all, or for one alone: clocks are not the same."""
        self._now_ms += self._source.choice(_PAUSES_MS)
        one = self._one_alive() if self._source.random() < 0.3 else None
        for replica in self._alive() if one is None else [one]:
            replica.election.tick(self._now_ms)
            self._settle(replica)

    def _append(self) -> None:
        for replica in self._alive():
            if replica.append(f"v{self._values + 1}"):
                self._values += 1
                self._settle(replica)

    def _learn(self) -> None:
        replica = self._one_alive()
        if replica is not None and replica.image is not self._controller.image:
            replica.learn(self._controller.image, MIN_ISR)
            self._settle(replica)

    def _reach_controller(self) -> None:
        """Have a question reach the controller, and an answer whoever asked it."""
        if self._asked and self._source.random() < 0.7:
            asker, change = self._asked.pop(0)
            self._note(f"{asker} asks for {change.isr}")
            self._answered.append((asker, self._controller.change(change)))
        if self._answered and self._source.random() < 0.7:
            asker, ended = self._answered.pop(0)
            if self.replicas[asker].is_alive:
                self.replicas[asker].election.step(ended)
                self._settle(self.replicas[asker])

    def _lose_or_double(self) -> None:
        if self._under_way:
            place = self._source.randrange(len(self._under_way))
            if self._source.random() < 0.5:
                self._under_way.pop(place)
            else:
                self._under_way.append(self._under_way[place])

    def _strike(self) -> None:
        """Have a process killed, or a machine lose its power: none while another one may lack what was committed."""
        replica = self._one_alive()
        if replica is None:
            return
        if self._crash is Crash.POWER and not self._doubtful - {replica.broker_id}:
            replica.lose_power(self._source.randint(0, len(replica.log)))
            self._doubtful.add(replica.broker_id)
        else:
            replica.end()
        self._note(f"{replica.broker_id} ends, {len(replica.log)} records stay")

    def _come_back(self) -> None:
        dead = [replica for replica in self.replicas.values() if not replica.is_alive]
        if dead:
            self._start(self._source.choice(dead))

    def _start(self, replica: KitReplica) -> None:
        epoch = self._controller.register(replica.broker_id, has_lost=replica.broker_id in self._doubtful)
        replica.start(epoch, self._controller.image, MIN_ISR)
        replica.election.tick(self._now_ms)
        self._settle(replica)

    def _fence(self) -> None:
        """Have the controller see that a process is gone."""
        for replica in self.replicas.values():
            if not replica.is_alive and not self._controller.image.brokers[replica.broker_id].is_fenced:
                self._controller.fence(replica.broker_id)
                return

    def _cut_off(self) -> None:
        one, other = self._source.sample(REPLICAS, 2)
        self._cut |= {(one, other)} | ({(other, one)} if self._source.random() < 0.7 else set())

    def _join_up(self) -> None:
        self._cut.clear()

    def _disturb(self) -> None:
        """Have a leader give up, or somebody find that its leader's process is gone; keep high watermarks."""
        replica = self._one_alive()
        if replica is None:
            return
        leader = self.replicas.get(replica.leader_id)
        if leader is not None and not leader.is_alive:
            replica.election.step(PeerRefused(leader.broker_id))
        elif self._source.random() < 0.3:
            replica.election.step(LeadershipGivenUp())
        replica.checkpoint = min(replica.election.high_watermark, len(replica.log))
        self._settle(replica)

    def _end_doubt(self, replica: KitReplica) -> None:
        """See whether a replica whose machine lost its power has all again, and is counted."""
        if replica.broker_id in self._doubtful and not replica.has_lost:
            leader = self.replicas.get(replica.leader_id)
            follows = (
                leader is not None
                and leader is not replica
                and leader.is_alive
                and leader.leads_in(replica.election.leader_epoch)
                and leader.log == replica.log
                and leader.election.high_watermark == replica.election.high_watermark == len(self._committed)
            )
            leads = replica.leads_in(replica.election.leader_epoch)
            is_in_sync = not self._controller.chooses or replica.broker_id in self._controller.state.isr
            if (follows or leads) and is_in_sync:
                self._doubtful.discard(replica.broker_id)

    # --------------------------------------------------------------------------------------------------------- safety

    def _check(self) -> None:
        for replica in self._alive():
            self._check_leader(replica)
            self._check_log(replica)
            self._check_committed(replica)

    def _check_leader(self, replica: KitReplica) -> None:
        epoch = replica.election.leader_epoch
        if not replica.leads_in(epoch):
            return
        if self._leaders.setdefault(epoch, replica.broker_id) != replica.broker_id:
            raise BrokenPromiseError(
                Promise.ONE_LEADER, f"{self._leaders[epoch]} and {replica.broker_id} led in epoch {epoch}"
            )
        earlier = [entry for entry in self._committed if entry.epoch < epoch]
        if replica.log[: len(earlier)] != earlier:
            raise BrokenPromiseError(
                Promise.COMPLETE_LEADER,
                f"{replica.broker_id} leads in epoch {epoch} with {replica.log}, and {earlier} were committed before",
            )

    def _check_log(self, replica: KitReplica) -> None:
        log = tuple(replica.log)
        for end in range(len(log), 0, -1):
            place = (end - 1, log[end - 1].epoch)
            known = self._written.get(place)
            if known is None:
                self._written[place] = log[:end]
            elif known != log[:end]:
                raise BrokenPromiseError(Promise.MATCHING_LOGS, f"{replica.broker_id} has {log[:end]}, not {known}")
            else:
                return  # what is before it was compared when it was written

    def _check_committed(self, replica: KitReplica) -> None:
        committed = replica.election.high_watermark
        known, own = self._committed, replica.log[:committed]
        if committed > len(replica.log):
            raise BrokenPromiseError(Promise.PREFIX, f"{replica.broker_id} has less than it says is committed")
        if own[: len(known)] != known[: len(own)]:
            raise BrokenPromiseError(Promise.PREFIX, f"{replica.broker_id} has {own}, and {known} were committed")
        if len(own) > len(known):
            self._committed = own
            have_it = {each.broker_id for each in self.replicas.values() if each.log[:committed] == own}
            if len(have_it | self._doubtful) < MIN_ISR:
                raise BrokenPromiseError(Promise.ENOUGH_COPIES, f"{own[-1]} is committed, and only {have_it} have it")

    # ------------------------------------------------------------------------------------------------------- liveness

    def _heal(self) -> None:
        """Have all come back, and see that they go on."""
        self._note("all come back")
        self._cut.clear()
        self._deaths = 0.0
        for replica in self.replicas.values():
            if not replica.is_alive:
                self._start(replica)
        leader = self._await(Promise.LEADS_AGAIN, self._lead_and_append)
        self._await(Promise.ALL_HAVE_IT, self._everybody_with_everything)
        if self._goes_on:
            leader = self._leader() or leader
            self._note(f"{leader.broker_id} dies for good")
            leader.end()
            before = len(self._committed)
            self._await(Promise.GOES_ON, lambda: self._lead_and_append(more_than=before))

    def _leader(self) -> KitReplica | None:
        leaders = [each for each in self._alive() if each.leads_in(each.election.leader_epoch)]
        return max(leaders, key=lambda each: each.election.leader_epoch, default=None)

    def _lead_and_append(self, more_than: int | None = None) -> KitReplica | None:
        """Have the leader take a record; return it if that, or more than so many records, is done."""
        leader = self._leader()
        if leader is None or (more_than is None and not leader.append(f"v{self._values + 1}")):
            return None
        self._values += 1
        if more_than is None:
            return leader
        leader.append(f"v{self._values}")
        return leader if len(self._committed) > more_than else None

    def _everybody_with_everything(self) -> KitReplica | None:
        """Return the leader where all have its log, and all know that it is committed, and are in sync."""
        leader = self._leader()
        if leader is None or (
            self._controller.chooses and set(self._controller.state.isr) != set(self._controller.state.replicas)
        ):
            return None
        ends = {(len(each.log), each.election.high_watermark) for each in self._alive()}
        return leader if ends == {(len(leader.log), len(leader.log))} and leader.log == self._committed else None

    def _await(self, promise: Promise, is_done: Callable[[], KitReplica | None]) -> KitReplica:
        """Let everything take its course, with no accident, until something is so.

        Raises:
            BrokenPromiseError: It did not come to be so.
        """
        for _ in range(HEALING_STEPS):
            self._go_on()
            self._check()
            found = is_done()
            if found is not None:
                return found
        raise BrokenPromiseError(promise, f"not within {HEALING_STEPS} steps: {list(self.replicas.values())}")

    def _go_on(self) -> None:
        self._now_ms += _TICK_MS
        for replica in self.replicas.values():
            if not replica.is_alive and not self._controller.image.brokers[replica.broker_id].is_fenced:
                self._controller.fence(replica.broker_id)
        for replica in self._alive():
            replica.learn(self._controller.image, MIN_ISR)
            replica.election.tick(self._now_ms)
            replica.carry_out()
            replica.fetch()
        for _ in range(_HOPS):
            under_way, self._under_way[:] = self._under_way[:], []
            for sent in under_way:
                self._hand_over_safely(sent)
        while self._asked:
            asker, change = self._asked.pop(0)
            self._answered.append((asker, self._controller.change(change)))
        while self._answered:
            asker, ended = self._answered.pop(0)
            if self.replicas[asker].is_alive:
                self.replicas[asker].election.step(ended)

    def _hand_over_safely(self, sent: Sent) -> None:
        target = self.replicas[sent.target]
        if target.is_alive:
            target.receive(sent, self._now_ms)
            target.carry_out()
            self._end_doubt(target)
        elif self.replicas[sent.source].is_alive:
            source = self.replicas[sent.source]
            source.election.step(PeerRefused(sent.target))
            source.carry_out()


def broken_promise(
    factory: ElectionFactory,
    settings: Mapping[str, object],
    crash: Crash,
    seed: int,
    *,
    goes_on_without_one: bool = True,
) -> Broken | None:
    """Run one ensemble; return which promise it broke, if it did."""
    ensemble = Ensemble(factory, settings, crash, seed, goes_on_without_one=goes_on_without_one)
    try:
        ensemble.run()
    except BrokenPromiseError as error:
        return Broken(seed, error.promise, str(error), tuple(ensemble.trace))
    return None
