"""Shell: `odradek cluster drain`: a broker comes to lead nothing, or to have nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.errors import ConfigError, ErrorCode

from . import say
from .actions import add_common_options, cluster_action
from .options import EXIT_STATUS, document, natural, positive
from .output import plural, print_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from odradek.kernel.types import TopicPartition

    from .cluster_calls import ClusterCalls
    from .placing.carrying_out import Outcome

_CORDONED: Final = "cordoned.log.dirs"
_ALL: Final = "*"


def _configure(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Take a broker out of use. Without --replicas it comes to lead nothing, which copies no record: other "
        "replicas that are in sync are preferred and elected. With --replicas all that it has is copied to the others, "
        "as evenly as the racks allow, and it gets no new replicas (cordoned.log.dirs=*); it may be dead already.\n\n"
        "Nothing comes back by itself. `odradek reassign generate` evens leaders and replicas out again, after "
        "`odradek configs alter broker ID --unset cordoned.log.dirs`.",
        [
            ("cluster drain 3", "before maintenance: it leads nothing"),
            ("cluster drain 3 --replicas --throttle 50000000", "before it goes for good, 50 MB a second at most"),
        ],
        exit_status=f"{EXIT_STATUS}; 1 too if something is left",
    )
    parser.add_argument("id", type=natural, metavar="ID", help="the broker's id")
    parser.add_argument("--replicas", action="store_true", help="everything, not the leaders alone")
    parser.add_argument("--throttle", type=positive, metavar="BYTES", help="a second, of each broker that copies")
    add_common_options(parser)


async def _drain(arguments: argparse.Namespace, calls: ClusterCalls) -> int:
    from .placing.reading import check_nothing_moves, read_nodes

    known = {node.node_id: node for node in await read_nodes(calls)}
    if arguments.id not in known:
        raise ConfigError(f"there is no broker {arguments.id}", hint=f"there are: {', '.join(map(str, known))}")
    if arguments.throttle is not None and not arguments.replicas:
        raise ConfigError("leaders move without a copy", where="--throttle", hint="it goes with --replicas")
    await check_nothing_moves(calls)
    if arguments.replicas:
        return await _drain_replicas(arguments, calls, is_away=known[arguments.id].is_fenced)
    live = frozenset(node.node_id for node in known.values() if not node.is_fenced)
    return await _drain_leaders(arguments, calls, live)


# ------------------------------------------------------------------------------ leaders


async def _drain_leaders(arguments: argparse.Namespace, calls: ClusterCalls, live: frozenset[int]) -> int:
    from .placing.assignments import as_json, one_line
    from .placing.draining import without_leaders

    plan = without_leaders(calls.topics.values(), arguments.id, live)
    before = {each: calls.topics[each.topic].partitions[each.partition].replicas for each in plan.changes}
    if before and not arguments.json:
        print(f"as it was (what leads back, by `odradek reassign execute`):\n{one_line(before)}\n")
    refused = await calls.admin.alter_partition_reassignments(plan.changes) if plan.changes else {}
    wanted = [each for each in plan.elected if each not in refused]
    answers = await calls.admin.elect_leaders(wanted) if wanted else {}
    failed = {
        each: error
        for each, error in {**refused, **answers}.items()
        if error is not None and error.code is not ErrorCode.ELECTION_NOT_NEEDED
    }
    moved = [each for each in wanted if each not in failed]
    left = sorted({*plan.left, *failed})
    if arguments.json:
        told = {"broker": arguments.id, "moved": len(moved), "left": [_named(each) for each in left]}
        print_json({**told, "before": as_json(before)})
    else:
        print(f"{plural(len(moved), 'leader')} moved away from broker {arguments.id}")
        for each in left:
            why = failed.get(each, "no other replica is in sync")
            say(f"{each} stays: {why}")
    return int(bool(left))


def _named(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


# ------------------------------------------------------------------------------ replicas


async def _drain_replicas(arguments: argparse.Namespace, calls: ClusterCalls, *, is_away: bool) -> int:
    from .placing.balance import planned
    from .placing.carrying_out import carry_out
    from .placing.reading import read_placing

    reading = await read_placing(calls, sorted(calls.topics))
    targets = frozenset(each.broker_id for each in reading.brokers) - {arguments.id}
    plan = planned(reading.brokers, reading.partitions, targets=targets, is_evened=False)
    is_cordoned = not is_away and await _cordon(calls, arguments.id)  # now that there is a plan
    outcome = await carry_out(calls, plan, rate_bytes=arguments.throttle)
    votes = arguments.id in {voter.replica_id for voter in (await calls.admin.describe_quorum()).voters}
    if arguments.json:
        print_json({"broker": arguments.id, "cordoned": is_cordoned, "votes": votes, **_as_json(outcome)})
    else:
        _print(arguments.id, outcome, votes=votes)
    return int(not outcome.is_done)


async def _cordon(calls: ClusterCalls, broker_id: int) -> bool:
    """Let a broker get no new replicas; return whether it is so: brokers before Kafka 4.3 know no such thing."""
    from odradek.client import BrokerError, ResourceType

    try:
        await calls.admin.alter_configs(ResourceType.BROKER, str(broker_id), {_CORDONED: _ALL})
    except BrokerError as error:
        say(f"broker {broker_id} may get new replicas meanwhile: {error}")
        return False
    return True


def _as_json(outcome: Outcome) -> dict[str, Any]:
    refused = [{**_named(each), "error": error.code.name} for each, error in sorted(outcome.refused.items())]
    return {"partitions": [move.as_json() for move in outcome.moves], "refused": refused}


def _print(broker_id: int, outcome: Outcome, *, votes: bool) -> None:
    from .placing.carrying_out import print_outcome

    if outcome.moves or outcome.refused:
        print_outcome(outcome)
    if not outcome.is_done:
        return
    print(f"broker {broker_id} has no partition any more")
    if votes:
        print(f"it is a controller, too: odradek cluster remove-controller {broker_id}")
    print(f"when it is stopped for good: odradek cluster unregister {broker_id}")


DRAIN_ACTIONS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Any]]] = {
    "drain": ("move a broker's leaders away, or all that it has", _configure, cluster_action(_drain)),
}
