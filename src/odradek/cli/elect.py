"""Shell: `odradek elect`: preferred replicas lead again, or some replica leads that lacks records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.kernel.errors import ConfigError, ErrorCode

from .actions import add_common_options, cluster_action, run_action
from .options import EXIT_STATUS, document
from .output import plural, print_json, print_table

if TYPE_CHECKING:
    import argparse

    from odradek.client import BrokerError, TopicPartition

    from .cluster_calls import ClusterCalls


LOOKS_MAX: Final = 20
LOOK_EVERY_S: Final = 0.1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    document(
        parser,
        "Let the preferred replica lead, the first one of each partition's list: as when a broker is back whose "
        "leaders went elsewhere. That happens by itself every five minutes "
        "(leader.imbalance.check.interval.seconds).\n\n"
        "With --unclean, let any replica that lives lead where nobody does: what only the others have is lost. It "
        "wants to be told which partitions.",
        [
            ("elect", "wherever another one leads than is preferred"),
            ("elect orders payments:0,3", "of a topic, and of some partitions"),
            ("elect orders:2 --unclean", "give up what is lost already"),
        ],
        exit_status=f"{EXIT_STATUS}; 1 too if nobody could be elected for one of them",
    )
    parser.add_argument("topics", nargs="*", metavar="TOPIC[:P,P]", help="default: all partitions")
    parser.add_argument("--unclean", action="store_true", help="let one lead that may lack records")
    add_common_options(parser)
    parser.set_defaults(act=cluster_action(_elect))


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked.

    Raises:
        ConfigError: An unclean election of everything.
    """
    if arguments.unclean and not arguments.topics:
        hint = "name the topics or partitions that nobody leads; `odradek cluster doctor` shows them"
        raise ConfigError("an unclean election loses records", where="--unclean", hint=hint)
    return run_action(arguments)


async def _elect(arguments: argparse.Namespace, calls: ClusterCalls) -> int:
    from .group_offsets import parse_partitions

    wanted = [each for text in arguments.topics for each in calls.partitions(*parse_partitions(text))]
    answers = await calls.admin.elect_leaders(wanted or None, is_unclean=arguments.unclean)
    elected = [partition for partition, error in answers.items() if error is None]
    failed = {
        partition: error
        for partition, error in answers.items()
        if error is not None and error.code is not ErrorCode.ELECTION_NOT_NEEDED
    }
    shown = await _shown(calls, elected)
    if arguments.json:
        print_json({"elected": shown, "failed": [_as_json(*each) for each in failed.items()]})
    else:
        _print(shown, failed)
    return int(bool(failed))


async def _shown(calls: ClusterCalls, elected: list[TopicPartition]) -> list[dict[str, Any]]:
    """Return who led and who leads; waits a moment for the broker that is asked to hear of it."""
    before = {
        each: calls.topics[each.topic].partitions[each.partition].leader_id
        for each in sorted(elected)
        if each.topic in calls.topics
    }
    after = dict(before)
    for _attempt in range(LOOKS_MAX if elected else 0):
        topics = {topic.name: topic for topic in await calls.admin.list_topics(with_internal=True)}
        known = {each: topics[each.topic].partitions for each in before if each.topic in topics}
        after |= {each: partitions[each.partition].leader_id for each, partitions in known.items()}
        if all(after[each] != leader_id for each, leader_id in before.items()):
            break
        await trio.sleep(LOOK_EVERY_S)
    return [
        {"topic": each.topic, "partition": each.partition, "before": leader_id, "leader": after[each]}
        for each, leader_id in before.items()
    ]


def _as_json(partition: TopicPartition, error: BrokerError) -> dict[str, Any]:
    told = {"error": error.code.name, "message": error.detail}
    return {"topic": partition.topic, "partition": partition.partition, **told}


def _print(shown: list[dict[str, Any]], failed: dict[TopicPartition, BrokerError]) -> None:
    print(f"elected {plural(len(shown), 'leader')}")
    if shown:
        print()
        rows = [[each["topic"], each["partition"], each["before"], each["leader"]] for each in shown]
        print_table(["topic", "partition", "before", "leader"], rows)
    if failed:
        print("\nnobody was elected for:\n")
        rows = [[each.topic, each.partition, error.code.name, error.detail] for each, error in sorted(failed.items())]
        print_table(["topic", "partition", "error", "why"], rows)
