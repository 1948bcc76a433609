"""Shell: a reassignment is begun, watched until it is done, and told about."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.cli import say
from odradek.cli.output import plural, print_table, size_text
from odradek.client import BrokerError
from odradek.kernel.errors import ConfigError
from odradek.kernel.machine.progress import ProgressLine, part_text

from .moves import Move, State, moves_of
from .reading import read_log_dirs, sizes_of
from .throttle import release_throttle, set_throttle, throttled_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.cli.cluster_calls import ClusterCalls
    from odradek.kernel.types import TopicPartition

FIRST_LOOK_S: Final = 0.2
LOOK_EVERY_S: Final = 1.0
_SHOWN_MAX: Final = 20


@attrs.frozen
class Outcome:
    """What came of a reassignment.

    Attributes:
        moves: Of each partition, how far it is.
        refused: Those that the controller did not take, and why.
    """

    moves: Sequence[Move]
    refused: Mapping[TopicPartition, BrokerError]

    @property
    def is_done(self) -> bool:
        """Whether all is as it was asked for."""
        return not self.refused and all(move.state is State.DONE for move in self.moves)


async def carry_out(
    calls: ClusterCalls,
    wanted: Mapping[TopicPartition, tuple[int, ...]],
    *,
    rate_bytes: int | None = None,
    is_awaited: bool = True,
) -> Outcome:
    """Begin a reassignment, and wait until nothing of it moves any more.

    Args:
        calls: The cluster.
        wanted: The replicas that partitions shall have.
        rate_bytes: How many bytes a second each broker may copy; as much as it can when None.
        is_awaited: Whether it is waited for; else throttles stay.

    Cancelled, or where the cluster cannot be asked any more, the moves go on under their throttle, and what ends it is
    told. What nobody moves for is not throttled any more when this raises.
    """
    is_over = False
    try:
        try:
            if rate_bytes is not None:
                await set_throttle(calls.admin, throttled_by(wanted, calls.topics), rate_bytes)
            refused = await calls.admin.alter_partition_reassignments(wanted)
        except BrokerError as error:
            if not error.retriable:  # after any other error nobody knows whether it has begun
                if rate_bytes is not None:
                    await release_throttle(calls.admin, wanted)
                is_over = True
            raise
        begun = {partition: replicas for partition, replicas in wanted.items() if partition not in refused}
        moves = await (_watch if is_awaited else look)(calls, begun)
        if rate_bytes is not None and is_awaited:
            await release_throttle(calls.admin, wanted)
        is_over = True
    finally:
        if not is_over:
            _tell_what_stays(is_throttled=rate_bytes is not None)
    return Outcome(moves, refused)


def _tell_what_stays(*, is_throttled: bool) -> None:
    throttled, taken = (", throttled", ", and takes throttles away when nothing moves") if is_throttled else ("", "")
    told = f"`odradek reassign verify --all` says how far{taken}; `cancel --all` ends them"
    say(f"moves go on{throttled}: {told}")


async def look(calls: ClusterCalls, wanted: Mapping[TopicPartition, tuple[int, ...]]) -> list[Move]:
    """Return how far partitions have come."""
    ongoing = await calls.admin.list_partition_reassignments()
    topics = {topic.name: topic for topic in await calls.admin.list_topics(with_internal=True)}
    moving = [each for each in wanted if each in ongoing]
    leaders = {topics[each.topic].partitions[each.partition].leader_id for each in moving if each.topic in topics}
    asked = {*leaders, *(broker_id for each in moving for broker_id in ongoing[each].replicas)}
    sizes = sizes_of(await read_log_dirs(calls, sorted(asked & {*calls.admin.opened().cluster.nodes})))
    return moves_of(wanted, topics, ongoing, sizes)


async def _watch(calls: ClusterCalls, wanted: Mapping[TopicPartition, tuple[int, ...]]) -> list[Move]:
    """Look until nothing moves, and show how far it is. Metadata of the broker that is asked may be a moment late."""
    line = ProgressLine()
    began_s = trio.current_time()
    pause_s = FIRST_LOOK_S
    try:
        while True:
            moves = await look(calls, wanted)
            if all(move.state is not State.MOVING for move in moves):
                return await _settled(calls, wanted, moves)
            line.show(partial(progress_text, moves, trio.current_time() - began_s))
            await trio.sleep(pause_s)
            pause_s = LOOK_EVERY_S
    finally:
        line.clear()


async def _settled(
    calls: ClusterCalls, wanted: Mapping[TopicPartition, tuple[int, ...]], moves: list[Move]
) -> list[Move]:
    """Look again for a moment where something ended otherwise: the broker that is asked may not know the end yet."""
    for _attempt in range(5):
        if all(move.state is not State.OTHERWISE for move in moves):
            break
        await trio.sleep(FIRST_LOOK_S)
        moves = await look(calls, wanted)
    return moves


def progress_text(moves: Sequence[Move], seconds: float) -> str:
    """Return how far moves have come, on one line."""
    done = sum(move.state is not State.MOVING for move in moves)
    copied = sum(move.copied_bytes for move in moves)
    total = sum(move.total_bytes for move in moves)
    told = f"{done} of {plural(len(moves), 'partition')} done"
    if total:
        told += f", {size_text(copied)} of {size_text(total)} of the others, {seconds:.0f} s"
    return f"{part_text(copied, total)}{told}"


def check_known(calls: ClusterCalls, wanted: Mapping[TopicPartition, tuple[int, ...]], brokers: frozenset[int]) -> None:
    """See that partitions and brokers exist: all of a reassignment is begun, or none.

    Raises:
        BrokerError: A topic or partition does not exist.
        ConfigError: A broker is not registered.
    """
    for partition, replicas in wanted.items():
        calls.partitions(partition.topic, [partition.partition])
        for broker_id in replicas:
            if broker_id not in brokers:
                hint = f"there are: {', '.join(map(str, sorted(brokers)))}"
                raise ConfigError(f"there is no broker {broker_id}, which {partition} is to go to", hint=hint)


def print_outcome(outcome: Outcome) -> None:
    """Print what came of a reassignment."""
    counts = {state: [move for move in outcome.moves if move.state is state] for state in State}
    told = {
        State.DONE: "as they were asked for",
        State.MOVING: "moving",
        State.OTHERWISE: "otherwise, and nothing moves: cancelled, moved again, or never begun",
        State.GONE: "gone",
    }
    for state, what in told.items():
        if counts[state]:
            verb = "is" if len(counts[state]) == 1 else "are"
            print(f"{plural(len(counts[state]), 'partition')} {verb} {what}")
    left = [*counts[State.MOVING], *counts[State.OTHERWISE], *counts[State.GONE]]
    if left:
        print()
        columns = ("topic", "partition", "state", "replicas", "wanted", "copied")
        print_table(columns, [_row(move) for move in left[:_SHOWN_MAX]])
        if len(left) > _SHOWN_MAX:
            print(f"... and {len(left) - _SHOWN_MAX} more; --json tells all")
    if outcome.refused:
        print(f"\n{plural(len(outcome.refused), 'partition')} refused:\n")
        refused = sorted(outcome.refused.items())
        print_table(
            ("topic", "partition", "error", "why"),
            [[each.topic, each.partition, error.code.name, error.detail] for each, error in refused],
        )


def _row(move: Move) -> list[object]:
    copied = f"{move.copied_bytes / move.total_bytes:.0%}" if move.total_bytes else ""
    return [move.partition.topic, move.partition.partition, move.state.value, move.replicas, move.wanted, copied]
