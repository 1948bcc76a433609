"""Pure core: replicas that vote come and go: one voter at a time, the next when the one before can do no harm any more.

    replicas    whom the topic shall have, then who is to go: all keep the log, and follow
    voters      who votes: of these one comes or goes with each step, `voters_epoch` is the step's number
    former      who voted before the step, as long as no leader has told that voters of this step elected it

| step | is made when |
| --- | --- |
| one is added | the leader tells that it has what is committed |
| one is removed | as many vote as shall, or did; the dead first, the leader last |
| the last one is taken back | it is not wanted any more, or too few of its voters live, and enough of the former ones |
| who has no vote any more is forgotten | all steps are made, and the leader has told so of the last |

A leader tells of a step when voters of this step have elected it, and a record of its epoch is committed: then nobody
can win an election any more by the votes of older voters (`plugins/election_quorum`, decision 35), so the next step may
be made. Before that there are no voters but these and the former, whose majorities overlap, as they differ by one.

A removed replica stays, as an observer, until all is done: so a reassignment can be cancelled, and whoever counted a
while ago is not empty if it counts again.

*Source:* KIP-455, for what clients see; Raft's dissertation, 4.1, for changes by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .partition_states import wanted_replicas

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..contracts.election import ElectionFactory, PartitionState


def changes_voters(factory: ElectionFactory) -> bool:
    """Return whether an election's voters may change while it serves; one that does not say so keeps those it has."""
    return bool(getattr(factory, "changes_voters", False))


def voting(state: PartitionState) -> tuple[int, ...]:
    """Return who votes."""
    return state.voters or state.replicas


def begun(state: PartitionState, target: tuple[int, ...]) -> PartitionState:
    """Return the state in which voters begin to become others; the reassignment before is given up.

    Who was to come and has no vote yet is forgotten at once; who has one is both added and removed, in what is told.
    """
    now, former = voting(state), state.former_voters
    before = tuple(replica for replica in state.replicas if replica not in state.adding_replicas)
    leaving = tuple(replica for replica in before if replica not in target)
    unwanted = tuple(each for each in state.adding_replicas if each in {*now, *former} and each not in target)
    state = attrs.evolve(
        state,
        replicas=(*target, *leaving, *unwanted),
        adding_replicas=(*(replica for replica in target if replica not in before), *unwanted),
        removing_replicas=(*leaving, *unwanted),
    )
    state = _with_voters(state, now)
    if former and any((replica in target) != (replica in now) for replica in {*now} ^ {*former}):
        return _with_step(state, former)  # back: the two are all whom anybody counts by
    return _settled(state)


def cancelled(state: PartitionState) -> PartitionState:
    """Return the state in which voters begin to become again who they were before the reassignment."""
    return begun(state, tuple(replica for replica in state.replicas if replica not in state.adding_replicas))


def told(state: PartitionState, voters_epoch: int, isr: Collection[int], live: Collection[int]) -> PartitionState:
    """Return the state after its leader has told that a record of its epoch is committed.

    Args:
        state: What is; in it the teller leads.
        voters_epoch: Of the voters by whom the teller was elected.
        isr: These, and who else has caught up.
        live: The brokers that may lead.
    """
    if voters_epoch == state.voters_epoch:
        state = attrs.evolve(state, former_voters=())
    if state.former_voters:
        is_stuck = not _could_lead(voting(state), live) and _could_lead(state.former_voters, live)
        return _with_step(state, state.former_voters) if is_stuck else state
    following = _next_voters(state, isr, live)
    return _settled(state) if following is None else _with_step(state, following)


def _next_voters(state: PartitionState, isr: Collection[int], live: Collection[int]) -> Collection[int] | None:
    """Return the voters of the next step, None where none is needed, or can be made now."""
    now, target = voting(state), wanted_replicas(state)
    missing = [replica for replica in target if replica not in now]
    following: set[int] | None = None
    if missing and len(now) <= max(len(target), len(state.replicas) - len(state.adding_replicas)):
        ready = [replica for replica in missing if replica in isr and replica in live]
        following = {*now, ready[0]} if ready else None
    else:
        going = [replica for replica in now if replica not in target]
        going.sort(key=lambda replica: (replica == state.leader, replica in live))
        following = {*now} - {going[0]} if going else None
    return following if following is not None and _could_lead(following, live) else None


def _could_lead(voters: Collection[int], live: Collection[int]) -> bool:
    """Return whether a majority of voters lives."""
    return 2 * sum(replica in live for replica in voters) > len(voters)


def _with_step(state: PartitionState, voters: Collection[int]) -> PartitionState:
    former = tuple(sorted(voting(state)))
    return _with_voters(attrs.evolve(state, former_voters=former, voters_epoch=state.partition_epoch + 1), voters)


def _with_voters(state: PartitionState, voters: Collection[int]) -> PartitionState:
    """Return the state with these voters, in the order of the replicas."""
    named = tuple(replica for replica in state.replicas if replica in voters)
    return attrs.evolve(state, voters=() if named == state.replicas else named)


def _settled(state: PartitionState) -> PartitionState:
    """Return the state without whoever was to go, where all voters are who they are to be, for good."""
    target = wanted_replicas(state)
    if state.former_voters or set(voting(state)) != set(target):
        return state
    return attrs.evolve(state, replicas=target, adding_replicas=(), removing_replicas=(), voters=())
