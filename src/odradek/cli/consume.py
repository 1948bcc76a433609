"""Shell: `odradek consume`: records from any place in a topic to standard output."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.errors import ConfigError
from odradek.kernel.machine.progress import ProgressLine, fills_a_file, part_text
from odradek.kernel.types import IsolationLevel, TopicPartition

from . import EXIT_DONE, EXIT_FAILED, say
from .offset_spec import Where, parse_offset, place
from .options import EXIT_STATUS, add_client_options, client_settings, document, natural, positive
from .output import plural
from .record_format import ShownRecord, compile_format, json_line, unescape

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from odradek.client import Consumer

    from .cluster_calls import ClusterCalls, Offsets
    from .offset_spec import OffsetSpec

POLL_MS: Final = 1_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    document(
        parser,
        "Read records of a topic and write them to standard output: from the beginning to the end as it is now, "
        "unless told otherwise. Partitions are read side by side; within each the order is that of the log.\n\n"
        "Where records go before they are read, by retention or as somebody deletes them, it goes on behind them, says "
        "which offsets are missing, and ends with status 1.",
        [
            ("consume orders", "every value, one a line"),
            ("consume orders -o -10", "the last ten of each partition"),
            ("consume orders --follow -o end", "what comes from now on, until Ctrl-C"),
            ("consume orders -o @2026-01-01 -u @2026-02-01 --json", "January, as JSON"),
            ("consume orders --group audit --follow", "as a member of a group; what is written is committed"),
            (r"consume orders -p 0 -o 1234 -c 1 -f '%T %k %h\n%s\n'", "one record, looked at closely"),
        ],
        notes=r"""
        offsets:  beginning or earliest, end or latest, 1234, -10 (before the end),
                  @MOMENT (the first record at or after it); a moment is in
                  milliseconds since 1970, or a date such as 2007-03-11T07:00:00Z
        formats:  %s value  %S its size  %k key  %K its size  %t topic
                  %p partition  %o offset  %T timestamp in ms  %h headers
                  %% percent  \n \r \t \\ \xNN as in C
        """,
        exit_status=f"{EXIT_STATUS}; also 1: some records were gone before they were read",
    )
    parser.add_argument("topic", metavar="TOPIC")
    where = parser.add_argument_group("what is read")
    where.add_argument(
        "-p", "--partition", type=natural, action="append", default=[], metavar="N", help="only this; may be repeated"
    )
    where.add_argument("-o", "--offset", default="earliest", metavar="OFFSET", help="where to begin (default earliest)")
    where.add_argument("-u", "--until", metavar="OFFSET", help="where to stop, itself not included (default end)")
    where.add_argument("-c", "--count", type=positive, metavar="N", help="stop after so many records")
    where.add_argument("-F", "--follow", action="store_true", help="do not stop at the end, wait for more")
    where.add_argument(
        "-g",
        "--group",
        metavar="GROUP",
        help="as a member of a group: what is written is committed",
    )
    how = parser.add_argument_group("what is written")
    how.add_argument("-f", "--format", metavar="TEXT", help="how a record is written (default %%s\\n)")
    how.add_argument("-K", "--key-delimiter", metavar="TEXT", help="write the key too, and this before the value")
    how.add_argument("-D", "--delimiter", default="\\n", metavar="TEXT", help="what ends a record (default \\n)")
    how.add_argument("-Z", "--null", default="", metavar="TEXT", help="what stands for null (default nothing)")
    how.add_argument("--json", action="store_true", help="write a line of JSON for each record")
    add_client_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Consume until the end, or until enough is read."""
    from odradek.client import Consumer

    from .running import run_interruptible

    settings = client_settings(arguments, allow_auto_create_topics="false", auto_offset_reset="none")
    if arguments.group is not None:
        from .consume_group import GroupWork, group_settings

        wishes = client_settings(arguments, allow_auto_create_topics="false", **group_settings(arguments))
        run_interruptible(GroupWork(arguments, Consumer(wishes), make_writer(arguments)).run, wishes)
        return 0
    if settings.get("group.id"):  # its consumer would commit what was fetched, and not what was written
        raise ConfigError("-X group.id makes no member of a group", hint=f"--group {settings['group.id']}")
    work = _Work(arguments, Consumer(settings))
    run_interruptible(work.run, settings)
    return EXIT_FAILED if work.has_gaps else EXIT_DONE


class _Work:
    """One run of the command.

    Attributes:
        has_gaps: Whether records were gone before they were read.
    """

    def __init__(self, arguments: argparse.Namespace, consumer: Consumer) -> None:
        self._arguments = arguments
        self._consumer = consumer
        self._begin = parse_offset(arguments.offset)
        self._until = parse_offset(arguments.until) if arguments.until is not None else None
        self._write = make_writer(arguments)
        self._left = arguments.count
        self._progress = _Progress(arguments.count)
        self._starts: Mapping[TopicPartition, int] = {}
        self._reached: dict[TopicPartition, int] = {}
        self.has_gaps = False

    async def run(self, settings: Mapping[str, object]) -> None:
        """Read all that was asked for."""
        from .cluster_calls import reach_for_topic

        topic = self._arguments.topic
        async with reach_for_topic(settings, topic) as calls:
            partitions = calls.partitions(topic, self._arguments.partition)
            offsets = await calls.offsets(partitions, isolation_level(settings))
            starts = self._starts = await _places(calls, self._begin, offsets)
            stops = dict(await self._stops(calls, offsets))
        open_ones = [partition for partition in partitions if starts[partition] < stops.get(partition, sys.maxsize)]
        if not open_ones:
            return
        self._progress.begin({partition: starts[partition] for partition in open_ones}, stops)
        try:
            async with self._consumer as consumer:
                consumer.assign(open_ones)
                for partition in open_ones:
                    consumer.seek(partition, starts[partition])
                    self._reached[partition] = starts[partition]
                await self._read(consumer, set(open_ones), stops)
        finally:
            self._progress.end()

    async def _stops(
        self, calls: ClusterCalls, offsets: Mapping[TopicPartition, Offsets]
    ) -> Mapping[TopicPartition, int]:
        """Return where to stop; nothing for partitions that are followed."""
        if self._until is not None:
            return await _places(calls, self._until, offsets)
        if self._arguments.follow:
            return {}
        return {partition: found.end for partition, found in offsets.items()}

    async def _read(
        self, consumer: Consumer, still_open: set[TopicPartition], stops: dict[TopicPartition, int]
    ) -> None:
        while still_open:
            records = await self._poll(consumer, stops)
            if self._show(records, stops):
                return
            # Positions, not records, tell the end: the last offsets may be control records, or compacted away.
            self._reached |= {partition: known.offset for partition, known in consumer.consumed().items()}
            done = {
                partition for partition in still_open if self._reached[partition] >= stops.get(partition, sys.maxsize)
            }
            self._progress.note(records, {partition: stops[partition] for partition in done})
            if done:
                still_open -= done
                consumer.pause(*done)

    async def _poll(self, consumer: Consumer, stops: dict[TopicPartition, int]) -> Sequence[Any]:
        """Return the next records; none where what was to be read is no longer there: then it goes on elsewhere."""
        from odradek.client import LogTruncationError, NoOffsetForPartitionError

        try:
            return await consumer.poll(timeout_ms=POLL_MS)
        except NoOffsetForPartitionError as error:
            for partition in error.topic_partitions:
                await self._find_again(consumer, partition, self._reached[partition], stops)
        except LogTruncationError as error:
            if error.end_offset is None:  # nobody can say what of the output is in the log
                raise
            await self._find_again(consumer, error.topic_partition, error.end_offset, stops)
        return []

    async def _find_again(
        self, consumer: Consumer, partition: TopicPartition, wanted: int, stops: dict[TopicPartition, int]
    ) -> None:
        """Go on in a partition where its log is nearest to what was to be read next, and say what is missing."""
        start = (await consumer.beginning_offsets([partition]))[partition]
        end = (await consumer.end_offsets([partition]))[partition]
        reached, found = self._reached[partition], min(max(wanted, start), end)
        consumer.seek(partition, found)
        self._reached[partition] = found
        gone_to = min(found, stops.get(partition, found)) - 1
        if partition in stops:  # what was cut off is not waited for
            stops[partition] = min(stops[partition], end)
        if found == reached:
            return  # its broker did not know all of it yet
        if found > reached == self._starts[partition] and self._begin.where is Where.BEGINNING:
            return  # the log began later before anything was read of it
        self.has_gaps = True
        self._progress.end()
        if found > reached:
            say(f"{partition}: the offsets from {reached} to {gone_to} were gone before they were read")
        else:
            say(f"{partition}: its log was cut at {found} after it was read up to {reached}; it is read on from there")

    def _show(self, records: Sequence[Any], stops: Mapping[TopicPartition, int]) -> bool:
        """Write the records that are wanted; return whether there were enough."""
        out = sys.stdout.buffer
        for record in records:
            if record.offset >= stops.get(TopicPartition(record.topic, record.partition), sys.maxsize):
                continue
            out.write(self._write(ShownRecord.of(record)))
            if self._left is not None:
                self._left -= 1
                if not self._left:
                    out.flush()
                    return True
        out.flush()
        return False


class _Progress:
    """How far a reading has come, for a person who has sent the records into a file."""

    def __init__(self, count: int | None) -> None:
        self._wanted = count
        self._line = ProgressLine()
        self._is_watched = self._line.is_watched and fills_a_file()
        self._records_count = 0
        self._starts: Mapping[TopicPartition, int] = {}
        self._stops: Mapping[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._began_s = time.perf_counter()

    def begin(self, starts: Mapping[TopicPartition, int], stops: Mapping[TopicPartition, int]) -> None:
        """Learn where the partitions that are read begin, and where those end that are not followed."""
        self._starts, self._stops = starts, stops
        self._positions = dict(starts)

    def note(self, records: Sequence[Any], ended: Mapping[TopicPartition, int]) -> None:
        """Count what was read, and show it; `ended` are partitions at their ends, with these offsets."""
        if not self._is_watched:
            return
        self._records_count += len(records)
        for record in records:
            self._positions[TopicPartition(record.topic, record.partition)] = record.offset + 1
        self._positions.update(ended)
        self._line.show(self._tell)

    def end(self) -> None:
        """Take the line away."""
        self._line.clear()

    def _tell(self) -> str:
        if self._wanted is not None:
            part = part_text(self._records_count, self._wanted)
        elif self._starts.keys() <= self._stops.keys():
            done = sum(position - self._starts[partition] for partition, position in self._positions.items())
            part = part_text(done, sum(self._stops[partition] - start for partition, start in self._starts.items()))
        else:
            part = ""  # what is followed has no end
        rate = self._records_count / max(time.perf_counter() - self._began_s, 1e-9)
        return f"{part}{plural(self._records_count, 'record')}, {rate:,.0f} records/s"


def isolation_level(settings: Mapping[str, object]) -> IsolationLevel:
    """Return the isolation level of a consumer with these settings: where it meets the end depends on it."""
    is_committed = settings.get("isolation.level") == "read_committed"
    return IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED


async def _places(
    calls: ClusterCalls, spec: OffsetSpec, offsets: Mapping[TopicPartition, Offsets]
) -> dict[TopicPartition, int]:
    """Return the offset that a place means in each partition."""
    by_timestamp: Mapping[TopicPartition, int | None] = {}
    if spec.where is Where.TIMESTAMP:
        by_timestamp = await calls.offsets_at(offsets, spec.number)
    return {
        partition: place(spec, start=found.start, end=found.end, by_timestamp=by_timestamp.get(partition))
        for partition, found in offsets.items()
    }


def make_writer(arguments: argparse.Namespace) -> Callable[[ShownRecord], bytes]:
    """Return what writes a record as the options say.

    Raises:
        ConfigError: Options exclude each other, or a format is wrong.
    """
    if arguments.json:
        if arguments.format is not None:
            raise ConfigError("--json and --format exclude each other")
        return json_line
    null = arguments.null.encode()
    if arguments.format is not None:
        return compile_format(arguments.format, null=null)
    end = unescape(arguments.delimiter)
    value = compile_format("%s", null=null)
    if arguments.key_delimiter is None:
        return lambda record: value(record) + end
    key, between = compile_format("%k", null=null), unescape(arguments.key_delimiter)
    return lambda record: key(record) + between + value(record) + end
