"""Shell: `odradek dlq`: list, show, replay and purge the dead letters of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.machine.progress import ProgressLine, part_text
from odradek.kernel.types import IsolationLevel

from .actions import add_actions, add_common_options, cluster_action, run_action
from .log_reads import fetch_log, read_log
from .options import client_settings, document, natural, positive
from .output import moment_text, plural, print_json, print_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from odradek.client import Producer
    from odradek.kernel.types import TopicPartition

    from .cluster_calls import ClusterCalls
    from .dead_letters import Chosen, DeadLetter
    from .log_reads import LogPart


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Work with dead letters: records that a group failed until its attempts were over, or did not want any more. "
        "They stay in TOPIC.GROUP.dlq until they are purged, or its retention takes them.",
        [
            ("dlq list orders --group billing", "where from, how often, why"),
            ("dlq replay orders --group billing --reason 'time-out'", "back to orders, each once"),
            ("dlq purge orders --group billing", "delete them"),
        ],
    )
    add_actions(parser, _ACTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    return run_action(arguments)


def _add_group(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="the topic that the group reads")
    parser.add_argument("--group", required=True, metavar="GROUP", help="the consumer group")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", metavar="TIME", help="only what died then or later: milliseconds or a date")
    parser.add_argument("--until", metavar="TIME", help="only what died before")
    parser.add_argument("--reason", default="", metavar="TEXT", help="only what has this in its reason")


def _chosen(arguments: argparse.Namespace) -> Chosen:
    from .dead_letters import Chosen
    from .offset_spec import parse_moment

    since = parse_moment(arguments.since) if arguments.since else None
    until = parse_moment(arguments.until) if arguments.until else None
    return Chosen(since, until, arguments.reason)


def _partitions(arguments: argparse.Namespace, calls: ClusterCalls) -> list[TopicPartition]:
    """Return the partitions of the dead letters of a group.

    Raises:
        BrokerError: There is no such topic.
    """
    from odradek.kernel.retry.names import retry_topics

    name = retry_topics(arguments.topic, arguments.group).dead
    calls.topic(name, f"odradek retry enable {arguments.topic} --group {arguments.group}")
    return calls.partitions(name)


async def _read_all(calls: ClusterCalls, partitions: Iterable[TopicPartition]) -> list[DeadLetter]:
    from .dead_letters import LetterReader

    found: list[DeadLetter] = []
    for partition, offsets in (await calls.offsets(partitions)).items():
        reader = LetterReader(partition.partition, offsets.start)
        await read_log(calls, partition, reader, offsets.end, isolation=IsolationLevel.READ_COMMITTED)
        found += reader.letters
    return found


# ------------------------------------------------------------------------------ list


def _configure_list(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "List dead letters: where each was read first, how often it was given back, and why it failed.",
        [
            ("dlq list orders --group billing --since 2026-11-26", "what died since"),
            ("dlq list orders --group billing --json | jq length", "how many there are"),
        ],
    )
    _add_group(parser)
    _add_choice(parser)
    add_common_options(parser)


async def _list(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    chosen = _chosen(arguments)
    letters = [each for each in await _read_all(calls, _partitions(arguments, calls)) if chosen.has(each)]
    if arguments.json:
        print_json([letter.row() for letter in letters])
    elif letters:
        rows = [(f"{each.partition}:{each.record.offset}", moment_text(each.died_ms), each.row()) for each in letters]
        columns = ("topic", "partition", "offset", "attempts", "reason", "key")
        print_table(("at", "died", *columns), [(at, died, *(row[name] for name in columns)) for at, died, row in rows])
    else:
        print("no dead letters")


# ------------------------------------------------------------------------------ show


def _configure_show(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Show one dead letter, by where it lies in the dead-letter topic.",
        [("dlq show orders --group billing 0 17", "partition 0, offset 17, as `dlq list` tells it")],
    )
    _add_group(parser)
    parser.add_argument("partition", type=natural, metavar="PARTITION")
    parser.add_argument("offset", type=natural, metavar="OFFSET")
    add_common_options(parser)


async def _show(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.client import BrokerError
    from odradek.kernel.errors import ErrorCode

    from .dead_letters import read_letters
    from .record_format import shown_text

    known = {partition.partition: partition for partition in _partitions(arguments, calls)}
    partition = known.get(arguments.partition)
    found: DeadLetter | None = None
    if partition is not None:
        part = await fetch_log(calls, partition, arguments.offset, IsolationLevel.READ_COMMITTED)
        letters = [letter for letter, _ in read_letters(arguments.partition, part, arguments.offset)]
        found = next((each for each in letters if each is not None and each.record.offset == arguments.offset), None)
    if found is None:
        what = f"there is no dead letter at offset {arguments.offset} of partition {arguments.partition}"
        raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, what)
    headers = [(name, shown_text(value)) for name, value in found.record.headers]
    if arguments.json:
        print_json({**found.row(), "died_ms": found.died_ms, "headers": headers})
        return
    row = found.row()
    print_table(("", ""), [("key", row["key"] or ""), ("value", row["value"] or ""), *headers])


# ------------------------------------------------------------------------------ replay


def _configure_replay(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Produce dead letters again, key, value and own headers, to the topic that they came from or to another. Each "
        "is replayed once, however long ago that was: the same asked again goes on where it was. Other times, another "
        "reason or another target is another replay.",
        [
            ("dlq replay orders --group billing --dry-run", "only say how many"),
            ("dlq replay orders --group billing --count 10", "ten, to begin with"),
            ("dlq replay orders --group billing --to orders-repair", "elsewhere"),
        ],
    )
    _add_group(parser)
    _add_choice(parser)
    parser.add_argument("--to", default="", metavar="TOPIC", help="where to; the topic that the group reads by default")
    parser.add_argument("--count", type=positive, metavar="N", help="so many at most")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be replayed")
    add_common_options(parser)


async def _replay(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.client import Producer
    from odradek.client.failed_records import LARGE_SETTINGS

    partitions = _partitions(arguments, calls)
    target, chosen = arguments.to or arguments.topic, _chosen(arguments)
    calls.topic(target)
    group = chosen.replay_group(partitions[0].topic, target)
    replay = _Replay(calls, chosen, target, group, arguments.count)
    if arguments.dry_run:
        await replay.run(partitions, await _replayed(calls, group, partitions), None)
    else:
        settings = {**client_settings(arguments, **LARGE_SETTINGS), "transactional.id": group}
        async with Producer(settings) as producer:
            await producer.init_transactions()  # fences a replay that was interrupted, and may still be under way
            await replay.run(partitions, await _replayed(calls, group, partitions), producer)
    if arguments.json:
        print_json({"topic": target, "replayed": replay.count, "dry_run": arguments.dry_run})
    else:
        said = "would be replayed" if arguments.dry_run else "replayed"
        print(f"{plural(replay.count, 'dead letter')} {said} to {target}")


async def _replayed(calls: ClusterCalls, group: str, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Return how far partitions were replayed, of which anything was."""
    committed = await calls.admin.list_group_offsets(group, partitions, require_stable=True)
    return {partition: known.offset for partition, known in committed.items() if known is not None}


class _Replay:
    """Replays, transaction by transaction: what was fetched at once, with the offset behind it; tells how far it is."""

    def __init__(self, calls: ClusterCalls, chosen: Chosen, target: str, group: str, count_max: int | None) -> None:
        self._calls = calls
        self._chosen = chosen
        self._target = target
        self._group = group
        self._count_max = count_max
        self._line = ProgressLine()
        self._offsets_done = self._offsets_count = 0
        self.count = 0

    @property
    def _is_full(self) -> bool:
        return self._count_max is not None and self.count >= self._count_max

    async def run(
        self, partitions: list[TopicPartition], starts: dict[TopicPartition, int], producer: Producer | None
    ) -> None:
        """Replay what there is; only count it without a producer. Cancelled: the open transaction is aborted."""
        known = await self._calls.offsets(partitions)
        left = {
            partition: range(max(starts.get(partition, 0), offsets.start), offsets.end)
            for partition, offsets in known.items()
        }
        self._offsets_count = sum(map(len, left.values()))
        try:
            for partition, offsets in left.items():
                await self._run_one(partition, offsets, producer)
        finally:
            self._line.clear()

    async def _run_one(self, partition: TopicPartition, offsets: range, producer: Producer | None) -> None:
        offset = offsets.start
        while offset < offsets.stop and not self._is_full:
            part = await fetch_log(self._calls, partition, offset, IsolationLevel.READ_COMMITTED)
            if not part.records:
                break
            letters, next_offset = self._next(partition, part, offset)
            if producer is not None:
                await self._produce(producer, partition, letters, next_offset)
            self._offsets_done += next_offset - offset
            offset = next_offset
            self._line.show(self._tell)

    def _tell(self) -> str:
        return part_text(self._offsets_done, self._offsets_count) + plural(self.count, "dead letter")

    def _next(self, partition: TopicPartition, part: LogPart, offset: int) -> tuple[list[DeadLetter], int]:
        """Return the dead letters that are meant, as many as are still wanted, and the offset behind them."""
        from .dead_letters import read_letters

        letters: list[DeadLetter] = []
        for letter, next_offset in read_letters(partition.partition, part, offset):
            if self._is_full:
                break
            offset = next_offset
            if letter is not None and self._chosen.has(letter):
                letters.append(letter)
                self.count += 1
        return letters, offset

    async def _produce(
        self, producer: Producer, partition: TopicPartition, letters: list[DeadLetter], offset: int
    ) -> None:
        from odradek.client.group.committed import OffsetAndMetadata
        from odradek.client.group.member import GroupMetadata
        from odradek.plugins.groups.offset_records import KEPT

        known = self._calls.topic(self._target).partitions
        async with producer.transaction():
            for letter in letters:
                is_home = letter.topic == self._target and letter.origin_partition in known
                await producer.enqueue(
                    self._target,
                    letter.record.value,
                    key=letter.record.key,
                    headers=letter.own_headers,
                    partition=letter.origin_partition if is_home else None,
                )
            # Dead letters may stay for longer than committed offsets do, and would be produced twice.
            await producer.send_offsets({partition: OffsetAndMetadata(offset, KEPT)}, GroupMetadata(self._group))


# ------------------------------------------------------------------------------ purge


def _configure_purge(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Delete dead letters: all that are there now, or those that were taken to their topic before a time.",
        [
            ("dlq purge orders --group billing --before 2026-11-01", "old ones"),
            ("dlq purge orders --group billing", "all"),
        ],
    )
    _add_group(parser)
    parser.add_argument("--before", metavar="TIME", help="only what was taken before: milliseconds or a date")
    parser.add_argument("--dry-run", action="store_true", help="only say how many offsets would go")
    add_common_options(parser)


async def _purge(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from .offset_spec import parse_moment

    partitions = _partitions(arguments, calls)
    known = await calls.offsets(partitions)
    ends: dict[TopicPartition, int] = {partition: offsets.end for partition, offsets in known.items()}
    if arguments.before:
        found = await calls.offsets_at(partitions, parse_moment(arguments.before))
        ends |= {partition: offset for partition, offset in found.items() if offset is not None}
    letters = [
        each for each in await _read_all(calls, partitions) if each.record.offset < ends[partitions[each.partition]]
    ]
    if not arguments.dry_run:
        gone = {partition: end for partition, end in ends.items() if end > known[partition].start}
        if gone:
            await calls.admin.delete_records(gone)
    if arguments.json:
        print_json({"topic": partitions[0].topic, "purged": len(letters), "dry_run": arguments.dry_run})
    else:
        print(f"{plural(len(letters), 'dead letter')} {'would go' if arguments.dry_run else 'deleted'}")


_ACTIONS: Final = {
    "list": ("list dead letters", _configure_list, cluster_action(_list)),
    "show": ("show one dead letter", _configure_show, cluster_action(_show)),
    "replay": ("produce them again, each once", _configure_replay, cluster_action(_replay)),
    "purge": ("delete them", _configure_purge, cluster_action(_purge)),
}
"""Name to summary, what adds its options, and what it does; in the order of `--help`."""
