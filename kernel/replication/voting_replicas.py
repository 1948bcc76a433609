"""Shell: the elections of all replicas of a broker that vote, run by one task and its rounds.

    a replica's inputs ──> election ──> `note` ──┐                ┌─> votes of all: one fsync (`vote_log`)
    time, for all of them ──> election ──> `note`┼─> a round ─────┼─> roles, records, watermarks, one by one
    Vote and its like, of many partitions ───────┘(`voting_rounds`)└─> messages, one a broker (`vote_channels`)

What whoever has decided something wants done is done in rounds, that of many replicas together. So a thousand
partitions that lose their leader together cost one fsync and one request to each broker, step by step, and not a
thousand.

What an election is no more, its replica is not from the same moment on, before anything is durable: who leads no more
acknowledges nothing, and who stands takes nothing more of the leader that it had. What an election becomes, its replica
becomes when all that it rests on is kept.

Heartbeats are the replication's: a fetch that was answered speaks for every partition that was asked for in it, and
the leader counts it so. Of partitions in which nothing happens nothing is sent, and their elections are left alone
(`calm_voters.py`) as long as those whom they hear are heard: that is looked up when one of them is due, and no election
is told of it. What it was not told it is told before anything else, with its time. Where something happens time passes
often, and what was answered is heard at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import trio

from ..contracts.election import FetchEnded, IsrChange, LeadershipGivenUp, PeerMessage, PeerRefused, Role
from ..errors import ErrorCode, StorageError, error_code
from ..machine.turnstile import take_turn
from ..partitions.election_driver import leads_in
from ..partitions.quiet_followers import followers_heard, tell_heard
from ..partitions.voting import Votes, is_hurried
from ..purgatory.timing_wheel import until_beat_ms
from .calm_voters import CalmVoters, Heard
from .heard_leaders import HeardLeaders
from .vote_channels import VoteChannels
from .vote_messages import gathered, parts, response_to
from .vote_questions import Asked, Questions
from .voting_rounds import RoundParts, Rounds, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..contracts.election import ElectionInput
    from ..contracts.storage import PartitionLog
    from ..partitions.replica import Replica
    from ..wire.message import Message
    from ..wire.messages.api_01_fetch import PartitionData
    from .leaders_heard import HeardLeader
    from .vote_log import VoteKey
    from .vote_messages import Part
    from .voting_parts import VotingParts

TICK_MS: Final = 25
"""How often time passes where something happens; on a machine that is slow it rests for as long as that has taken."""
CALM_TICK_MS: Final = 500
"""How often it is looked who is due, and time passes for elections that are not left alone, at the most seldom."""
LOOK_AT_ALL_MS: Final = 5000
"""How often it is looked which replicas are gone, and what the metadata says of those that lead."""
CALM_TICKS_MIN: Final = 4
"""So often at the least while a voter waits for its leader."""
UNREST_MS: Final = 3000
"""So long after anything it is not calm: longer than an election takes."""
REPLICAS_PER_TURN: Final = 100
FORGOTTEN: Final = (
    "it votes, and of what it has voted there is nothing in its log directory: a voter whose disk was replaced, or "
    "emptied, has no vote any more, for it might vote twice; put back what was there, or reassign the partition "
    "without this broker and then with it again"
)
NO_DIRECTORY: Final = "it votes, and its storage has no log directory in which votes could be kept"


class VotingReplicas:
    """Life: made, `note` as replicas have inputs, `run` as a service. Owned by the broker; any task may call.

    Effects wait for `run`. It is `partitions.voting.Voting`, `fetcher.LeadersHeard`, and its rounds' `Elections`.
    """

    def __init__(self, parts: VotingParts) -> None:
        """Make it without a replica."""
        self._parts = parts
        self._channels = VoteChannels(
            parts.brokers, cluster_id=parts.cluster_id, timeout_ms=parts.timeout_ms, on_answer=self._take_answer
        )
        self._round_parts = RoundParts(parts.replicas, parts.writes, parts.votes, parts.threads, parts.clock)
        self._rounds: dict[str, Rounds] = {}
        self._send, self._receive = trio.open_memory_channel[Rounds](float("inf"))
        self._voting: dict[Replica, Rounds] = {}
        self._awake: dict[Replica, None] = {}
        self._calm = CalmVoters()
        self._restless_ms: dict[Replica, int] = {}
        self._doubted: set[VoteKey] = set()
        self._questions = Questions()
        self._leaders = HeardLeaders(parts.broker_id, parts.broker)
        self._refusing: dict[int, None] = {}
        self._calm_due_ms = self._all_due_ms = self._looked_ms = 0
        self._woken = trio.Event()

    def __repr__(self) -> str:
        counts = f"{len(self._restless_ms)} of them restless, {len(self._calm)} left alone"
        return f"<VotingReplicas: {len(self._voting)}, {counts}>"

    # --------------------------------------------------------------------------------------------- what replicas tell

    def begin(self, log_dirs: Iterable[str]) -> None:
        """See `Voting.begin`."""
        for log_dir in log_dirs:
            self._parts.votes.begin(log_dir)

    def votes_of(self, log: PartitionLog, *, is_at_home: bool) -> Votes:
        """See `Voting.votes_of`."""
        if not log.log_dir:
            raise StorageError(NO_DIRECTORY)
        logs, key = self._parts.votes, key_of(log.partition)
        kept = logs.of(log.log_dir).kept(*key)
        if kept is None:
            if log.log_end_offset or not is_at_home:
                raise StorageError(FORGOTTEN)
            return Votes()
        if logs.is_of_this_boot(kept):
            return Votes(kept.state)
        is_whole = log.was_clean and log.log_end_offset  # one of which nothing is left is as clean as a new one
        if key in self._doubted or not is_whole or not logs.has_ended_well(log.log_dir, kept):
            self._doubted.add(key)
            return Votes(kept.state, may_have_lost=True)
        self._keep_later(log.log_dir, key, kept.state)  # from now on this boot's page cache has it
        return Votes(kept.state)

    def _keep_later(self, log_dir: str, key: VoteKey, state: bytes | None) -> None:
        self._rounds_of(log_dir).keep_later(key, state)

    def _rounds_of(self, log_dir: str) -> Rounds:
        rounds = self._rounds.get(log_dir)
        if rounds is None:
            rounds = self._rounds[log_dir] = Rounds(log_dir, self._round_parts, self)
            self._send.send_nowait(rounds)
        return rounds

    def end(self) -> None:
        """See `Voting.end`."""
        self._parts.votes.end({log_dir: rounds.later for log_dir, rounds in self._rounds.items()})

    def note(self, replica: Replica) -> None:
        """See `Voting.note`."""
        self.end_what_is_over(replica)
        if replica.offline_reason is not None and not replica.is_paused:
            return  # it takes no part any more
        rounds = self._voting.get(replica)
        if rounds is None:
            rounds = self._voting[replica] = self._rounds_of(replica.log.log_dir)
            self._awake[replica] = None
        self._wake(replica)
        if not self._restless_ms:
            self._woken.set()
        self._restless_ms[replica] = self._parts.clock.monotonic_ms()
        rounds.note(replica)

    def end_what_is_over(self, replica: Replica) -> None:
        """See `Elections.end_what_is_over`."""
        election = replica.election
        if replica.is_leader:
            if not leads_in(election, replica.leader_epoch):
                replica.is_leader = False
                self._parts.replicas.progressed((replica,))
        elif election.role is not Role.FOLLOWER or election.leader_epoch != replica.leader_epoch:
            self._parts.forget(replica.topic_partition)

    def heard(self, leader: HeardLeader, named: Iterable[Replica], slow: Iterable[Replica]) -> None:
        """See `LeadersHeard.heard`."""
        self._leaders.note(leader, self._parts.clock.monotonic_ms())
        if leader.leader_id not in self._leaders.lost:
            event = FetchEnded(leader.leader_id)
            restless = [replica for replica in named if replica in self._restless_ms] if self._restless_ms else []
            for replica in (*restless, *slow):
                self._step_quietly(replica, event)

    def unheard(self, replica: Replica) -> None:
        """See `LeadersHeard.unheard`."""
        self._wake(replica)

    def refused(self, leader_id: int, replica: Replica, answer: PartitionData) -> None:
        """See `LeadersHeard.refused`."""
        leader = answer.current_leader
        known = (leader.leader_id, leader.leader_epoch) if leader is not None else (-1, -1)
        self._step_quietly(replica, FetchEnded(leader_id, error_code(answer.error_code), *known))

    def _step_quietly(self, replica: Replica, event: FetchEnded | PeerRefused) -> None:
        """Have an election take an input that in most cases decides nothing."""
        self._wake(replica)
        try:
            replica.election.step(event)
            if replica.election.ready() is not None or is_hurried(replica.election):
                self.note(replica)
        except Exception as error:  # a plugin's: its partition pays, nobody else
            self.fail(replica, error)

    def peer_refused(self, broker_id: int) -> None:
        """Take note that a broker's machine refuses connections: its process is gone, whoever it leads need not wait.

        Does not raise.
        """
        self._refusing[broker_id] = None
        self._woken.set()

    # ------------------------------------------------------------------------------------------- what other brokers ask

    async def answer(self, request: Message) -> Message:
        """Answer Vote, BeginQuorumEpoch or EndQuorumEpoch of many partitions, once all that it rests on is durable.

        Partitions that have no answer in time are left out. Cancelled: what the request changed is changed.
        """
        asked = Asked()
        try:
            with trio.move_on_after(self._parts.timeout_ms() / 2000):  # so that the answer is still waited for
                for number, part in enumerate(parts(request), 1):
                    if number % REPLICAS_PER_TURN == 0:
                        await take_turn()
                    self._ask(part, asked)
                await asked.wait()
        finally:
            self._questions.forget(asked)
        return gathered(asked.answers) if asked.answers else response_to(request, ErrorCode.INVALID_REQUEST)

    def _ask(self, part: Part, asked: Asked) -> None:
        replica = self._voter(part)
        if replica is None:
            asked.refuse(part, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            correlation_id = self._questions.open(asked, replica, part)
            self._step_message(replica, part.asking, part.alone(replica.partition), correlation_id)

    async def _take_answer(self, broker_id: int, answer: Message) -> None:
        for number, part in enumerate(parts(answer), 1):
            if number % REPLICAS_PER_TURN == 0:
                await take_turn()
            replica = self._voter(part)
            if replica is not None:
                self._step_message(replica, broker_id, part.alone(replica.partition), 0)

    def _step_message(self, replica: Replica, broker_id: int, message: Message, correlation_id: int) -> None:
        self._step_input(replica, PeerMessage(broker_id, message, correlation_id))

    def _step_input(self, replica: Replica, event: ElectionInput) -> None:
        self._wake(replica)
        try:
            replica.step(event)
        except Exception as error:  # a plugin's: its partition pays, nobody else
            self.fail(replica, error)

    def _voter(self, part: Part) -> Replica | None:
        """Return the replica that a part of a message is for, if it has a vote and a log."""
        topic = None if part.topic_id is None else self._parts.replicas.topics_by_id.get(part.topic_id)
        replica = None if topic is None else topic.partitions.get(part.number)
        if replica is None or replica.voting is None or replica.offline_reason is not None:
            return None
        return replica

    # ------------------------------------------------------------------------------------------------------------- time

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run all elections until cancelled; what is being kept then is kept."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._channels.run)
            nursery.start_soon(self._run_rounds)
            task_status.started()
            while True:
                self._woken = trio.Event()
                begun_ms = self._parts.clock.monotonic_ms()
                await self._let_time_pass()
                if self._restless_ms:
                    took_ms = self._parts.clock.monotonic_ms() - begun_ms
                    await trio.sleep(max(TICK_MS, min(took_ms, CALM_TICK_MS)) / 1000)
                else:
                    calm_ms = max(TICK_MS, self._calm_due_ms - self._parts.clock.monotonic_ms())
                    with trio.move_on_after(calm_ms / 1000 if self._voting else math.inf):
                        await self._woken.wait()

    async def _run_rounds(self) -> None:
        """Have a task for the rounds of each log directory."""
        running: set[Rounds] = set()
        async with trio.open_nursery() as nursery:
            for rounds in self._rounds.values():
                running.add(rounds)
                nursery.start_soon(rounds.run, name=repr(rounds))
            async for rounds in self._receive:
                if rounds not in running:
                    running.add(rounds)
                    nursery.start_soon(rounds.run, name=repr(rounds))

    @property
    def _calm_tick_ms(self) -> int:
        return max(TICK_MS, min(CALM_TICK_MS, self._parts.fetch_timeout_ms() // CALM_TICKS_MIN))

    async def _let_time_pass(self) -> None:
        refusing, self._refusing = self._refusing, {}
        for broker_id in refusing:
            await self._step_refused(broker_id)
        now_ms = self._parts.clock.monotonic_ms()
        if now_ms >= self._calm_due_ms:
            await self._look_at_all(now_ms)
            rested_ms = self._parts.clock.monotonic_ms() + self._calm_tick_ms // 2  # however long this one took
            self._calm_due_ms = rested_ms + until_beat_ms(rested_ms, self._calm_tick_ms)
            return
        for number, replica in enumerate(list(self._restless_ms), 1):
            if number % REPLICAS_PER_TURN == 0:
                await take_turn()
            self._tick(replica, now_ms)
            self._find_rest(replica, now_ms)

    def _find_rest(self, replica: Replica, now_ms: int) -> None:
        """Have a replica be restless no more if nothing has happened in it for a while."""
        if now_ms - self._restless_ms.get(replica, now_ms) >= UNREST_MS:
            del self._restless_ms[replica]

    async def _step_refused(self, broker_id: int) -> None:
        event = PeerRefused(broker_id)
        for number, replica in enumerate(list(self._voting), 1):
            if number % REPLICAS_PER_TURN == 0:
                await take_turn()
            if replica.leader_id == broker_id or replica.election.role is Role.CANDIDATE:
                self._step_input(replica, event)

    async def _look_at_all(self, now_ms: int) -> None:
        """Let time pass for all that are not left alone, and wake whoever is not to be any more.

        Now and then leave out who is gone, and tell the controller again what it does not say.
        """
        await self._leave_lost_leaders(now_ms)
        for number, due in enumerate(self._calm.due(now_ms, self._last_heard), 1):
            if due is not None:
                self._wake(due)
            if number % REPLICAS_PER_TURN == 0:
                await take_turn()
        looked = self._awake
        if now_ms >= self._all_due_ms or self._is_leaving():
            self._all_due_ms, looked = now_ms + LOOK_AT_ALL_MS, dict.fromkeys(self._voting)
        for number, replica in enumerate(list(looked), 1):
            if number % REPLICAS_PER_TURN == 0:
                await take_turn()
            if not replica.is_paused and not self._parts.replicas.is_served(replica):
                self._leave_out(replica)
                continue
            if replica in self._awake:
                self._hear_leader(replica)
                self._tick(replica, now_ms)
                self._find_rest(replica, now_ms)
            self._tell_controller(replica)
            self._leave_alone(replica, now_ms)
        self._looked_ms = now_ms

    async def _leave_lost_leaders(self, now_ms: int) -> None:
        """Have leaders left that are not to be listened to from now on."""
        for leader in self._leaders.look(now_ms):
            for number, replica in enumerate(leader.voters_heard(), 1):
                if number % REPLICAS_PER_TURN == 0:
                    await take_turn()
                self._step_quietly(replica, PeerRefused(leader.leader_id))

    def _hear_leader(self, replica: Replica) -> None:
        """Tell an election that its leader has answered since the last look."""
        if not replica.is_leader:
            heard = self._leaders.of(replica)
            if heard is not None and heard.heard_ms >= self._looked_ms:
                self._step_quietly(replica, FetchEnded(replica.leader_id))

    def _last_heard(self, replica: Replica) -> Heard | None:
        """Return when whoever a replica hears was heard last, each of them; None where one is not."""
        if not replica.is_leader:
            return self._leaders.of(replica)
        found = followers_heard(replica)
        return None if found is None else Heard(*found)

    def _leave_alone(self, replica: Replica, now_ms: int) -> None:
        """Leave an election alone in which nothing happens, if it says that it may be."""
        if replica not in self._awake or replica in self._restless_ms or replica.offline_reason is not None:
            return
        calm_ms: Callable[[], int] | None = getattr(replica.election, "calm_ms", None)
        heard = self._last_heard(replica) if calm_ms is not None else None
        if calm_ms is None or heard is None or not self._is_recorded(replica):
            return
        try:
            length_ms = calm_ms()
        except Exception as error:  # a plugin's: its partition pays, nobody else
            self.fail(replica, error)
            return
        if heard.heard_ms + length_ms > now_ms:
            del self._awake[replica]
            self._calm.begin(replica, length_ms, heard)

    def _wake(self, replica: Replica) -> None:
        """Leave an election alone no more: it is told what it was not, and time passes up to then."""
        heard_ms = self._calm.end(replica)
        if heard_ms is None:
            return
        self._awake[replica] = None
        heard = self._last_heard(replica)
        if heard is not None:
            heard_ms = max(heard_ms, heard.heard_ms)
        try:
            if replica.is_leader:
                tell_heard(replica)
            else:
                replica.election.step(FetchEnded(replica.leader_id))
            replica.election.tick(heard_ms)
        except Exception as error:  # a plugin's: its partition pays, nobody else
            self.fail(replica, error)

    def _leave_out(self, replica: Replica) -> None:
        del self._voting[replica]
        self._awake.pop(replica, None)
        self._calm.end(replica)
        self._restless_ms.pop(replica, None)
        self._questions.close(replica)
        partition = replica.partition
        if partition.topic_id not in self._parts.replicas.topics_by_id:
            self._keep_later(replica.log.log_dir, key_of(partition), None)

    def _tick(self, replica: Replica, now_ms: int) -> None:
        """Let time pass for a replica; one that is paused asks its leader for nothing, so it does not wait for it.

        What a leader tells now and then, as long as somebody is silent or voters change, does not make it restless.
        """
        try:
            if replica.is_paused:
                replica.election.step(FetchEnded(replica.leader_id))
                return
            tell_heard(replica)
            replica.election.tick(now_ms)
            if replica.election.ready() is None and not is_hurried(replica.election):
                return
            rounds = self._voting.get(replica)
            leads_on = replica.is_leader and leads_in(replica.election, replica.leader_epoch)
            if rounds is not None and (leads_on or rounds.is_noted(replica)):
                self.end_what_is_over(replica)
                rounds.note(replica)
            else:
                self.note(replica)
        except Exception as error:  # a plugin's: its partition pays, nobody else
            self.fail(replica, error)

    def _tell_controller(self, replica: Replica) -> None:
        """Tell the controller that a replica leads, while the metadata says something else; it may be on its way.

        A leader whose broker is about to stop, as the metadata has it, has others elect another one instead.
        """
        state = replica.state
        if not replica.is_leader or state is None or replica.leader_id not in state.replicas:
            return
        if self._is_leaving():
            self._step_input(replica, LeadershipGivenUp())
        elif not self._is_recorded(replica):
            change = IsrChange((), replica.leader_epoch, state.partition_epoch)
            self._parts.tell_controller(replica, change)

    def _is_leaving(self) -> bool:
        known = self._parts.broker(self._parts.broker_id)
        return known is not None and not known.is_live and not known.is_fenced

    def _is_recorded(self, replica: Replica) -> bool:
        """Return whether the metadata says of a replica that leads that it does."""
        state = replica.state
        told = (replica.leader_id, replica.leader_epoch)
        return not replica.is_leader or (state is not None and told == (state.leader, state.leader_epoch))

    # ----------------------------------------------------------------------------------------------- what rounds tell

    def tell_controller(self, replica: Replica, change: IsrChange) -> None:
        """See `Elections.tell_controller`; what is lost is told again as time passes."""
        self._parts.tell_controller(replica, change)

    def changed(self, replica: Replica) -> None:
        """See `Elections.changed`."""
        self._parts.role_changed(replica)
        self._tell_controller(replica)

    def fail(self, replica: Replica, error: Exception) -> None:
        """See `Elections.fail`."""
        self._parts.replicas.fail(replica, error)
        self._questions.close(replica)

    def left(self, replica: Replica) -> None:
        """See `Elections.left`."""
        self._questions.close(replica)

    def deliver(self, replica: Replica, messages: Sequence[PeerMessage]) -> None:
        """Give answers to who asked, and have the rest sent; an answer that nobody waits for any more is dropped."""
        for message in messages:
            if message.correlation_id:
                self._questions.answer(message.correlation_id, replica.partition, message.message)
            else:
                self._channels.send(message.broker_id, replica.partition, message.message)
