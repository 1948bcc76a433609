"""Shell: `odradek perf`: how fast a broker takes and gives records, seen from a client."""

from __future__ import annotations

import functools
import random
import time
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.machine.progress import ProgressLine, part_text
from odradek.lab.compare.samples import PERCENTILES, Samples, Throughput, latencies_as_json

from .options import EXIT_STATUS, add_client_options, add_json_option, client_settings, document, natural, positive
from .output import plural, print_json, size_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable

    from odradek.client import ClientError, RecordMetadata

PAYLOADS_COUNT: Final = 64
POLL_MS: Final = 1_000
POLL_RECORDS: Final = 10_000
IDLE_S_MAX: Final = 10.0
_MILLISECONDS: Final = 1_000
_NOTE: Final = """
Figures are those of a client in Python, which shares this machine with whatever
else runs on it: good for comparing brokers and settings in one sitting, not for
the limits of a broker.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Measure how fast a broker takes and gives records, and how long they take. Any broker that speaks Kafka's "
        "protocol will do.",
        [
            ("perf produce load --create", "100,000 records of 100 bytes"),
            ("perf consume load", "read them all"),
        ],
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    produce = actions.add_parser("produce", help="write records, measure until they are acknowledged")
    document(
        produce,
        "Write records of random bytes, and measure how many go through and how long each takes from the call to its "
        "acknowledgement. Without --rate the buffers are kept full, so that latency is mostly waiting in line; with "
        "it, latency is what a record of a calm application sees.",
        [
            ("perf produce load --create -n 1000000 -s 1024", "a million records of 1 KiB"),
            ("perf produce load --rate 500 -n 5000 -X linger.ms=0", "latency at 500 records a second"),
            ("perf produce load -z zstd -X acks=1 --json", "other settings, for a script"),
        ],
        notes=_NOTE,
    )
    produce.add_argument("topic", metavar="TOPIC")
    produce.add_argument(
        "-n", "--records", type=positive, default=100_000, metavar="N", help="how many (default 100000)"
    )
    produce.add_argument("-s", "--size", type=natural, default=100, metavar="BYTES", help="of each value (default 100)")
    produce.add_argument("-r", "--rate", type=positive, metavar="N", help="records a second (default: all it takes)")
    produce.add_argument("-z", "--compress", metavar="CODEC", help="gzip, snappy, lz4 or zstd")
    produce.add_argument("--create", action="store_true", help="create the topic if it is not there")
    produce.set_defaults(measure=_measure_produce)
    consume = actions.add_parser("consume", help="read records, measure throughput and latency")
    document(
        consume,
        "Read a topic from its beginning to its end, and measure how many records come and how long each poll waits. "
        "With --follow it reads what is produced from now on, and measures how old each record is when it arrives: "
        "end to end, if the clocks agree.",
        [
            ("perf consume load", "all that is there"),
            ("perf consume load --follow -n 5000", "end to end; run `odradek perf produce --rate` beside it"),
        ],
        notes=_NOTE,
        exit_status=f"{EXIT_STATUS}; 1 too if nothing comes for 10 s",
    )
    consume.add_argument("topic", metavar="TOPIC")
    consume.add_argument("-n", "--records", type=positive, metavar="N", help="stop after so many (default: all)")
    consume.add_argument("-F", "--follow", action="store_true", help="read new records, measure their age")
    consume.set_defaults(measure=_measure_consume)
    for action in (produce, consume):
        add_json_option(action)
        add_client_options(action)


@attrs.define
class Measured:
    """What was measured so far; shown on a terminal as it grows."""

    wanted: int | None
    what: str
    latencies: Samples = attrs.field(factory=Samples)
    records_count: int = 0
    size_bytes: int = 0
    began_s: float = attrs.field(factory=time.perf_counter)
    ended_s: float | None = None
    line: ProgressLine = attrs.field(factory=ProgressLine)

    @property
    def throughput(self) -> Throughput:
        """So far, or of all when it has ended."""
        ended_s = time.perf_counter() if self.ended_s is None else self.ended_s
        return Throughput(self.records_count, self.size_bytes, ended_s - self.began_s)

    def show_progress(self) -> None:
        """Show how it goes, from time to time, where somebody watches."""
        self.line.show(self._progress)

    def _progress(self) -> str:
        part = part_text(self.records_count, self.wanted)
        return f"{part}{plural(self.records_count, 'record')}, {self.throughput}"

    def report(self, *, as_json: bool) -> None:
        """Print the result."""
        self.line.clear()
        throughput = self.throughput
        if as_json:
            latencies = {"latency_of": self.what, **latencies_as_json(self.latencies)}
            print_json({**throughput.as_json(), "latency": latencies})
            return
        size = size_text(throughput.size_bytes)
        print(f"{plural(throughput.records_count, 'record')}, {size}, in {throughput.seconds:.2f} s: {throughput}")
        figures = zip(PERCENTILES, self.latencies.percentiles(), strict=True)
        parts = [f"mean {self.latencies.mean_ms:.2f}", *(f"p{percent:g} {value:.2f}" for percent, value in figures)]
        print(f"{self.what}, ms: {', '.join(parts)}, max {self.latencies.max_ms:.2f}")


def run(arguments: argparse.Namespace) -> int:
    """Measure and report; an interruption ends the measuring, not the report."""
    from .running import run_interruptible

    work: tuple[Measured, Callable[[], Awaitable[None]]] = arguments.measure(arguments)
    measured, measure = work
    try:
        run_interruptible(measure)
    except KeyboardInterrupt:
        measured.report(as_json=arguments.json)
        raise
    measured.report(as_json=arguments.json)
    return 0


# ------------------------------------------------------------------------------ produce


def _measure_produce(arguments: argparse.Namespace) -> tuple[Measured, Callable[[], Awaitable[None]]]:
    settings = client_settings(arguments, **({"compression_type": arguments.compress} if arguments.compress else {}))
    measured = Measured(arguments.records, "from call to acknowledgement")
    return measured, functools.partial(_produce, arguments, settings, measured)


async def _produce(arguments: argparse.Namespace, settings: dict[str, object], measured: Measured) -> None:
    import trio

    from odradek.client import Producer

    from .cluster_calls import reach_for_topic

    remedy = "--create makes it"
    async with reach_for_topic(settings, arguments.topic, is_created=arguments.create, remedy=remedy):
        pass
    source = random.Random(0)  # the same bytes each time
    payloads = [source.randbytes(arguments.size) for _ in range(PAYLOADS_COUNT)]
    failures: list[ClientError] = []

    def on_delivery(called_s: float, metadata: RecordMetadata | None, error: ClientError | None) -> None:
        if error is not None:
            failures.append(error)
            return
        measured.latencies.add((time.perf_counter() - called_s) * _MILLISECONDS)
        measured.records_count += 1
        measured.size_bytes += arguments.size

    async with Producer(settings) as producer:
        await producer.partitions_for(arguments.topic)
        measured.began_s = time.perf_counter()
        for number in range(arguments.records):
            if arguments.rate:
                due_s = measured.began_s + number / arguments.rate - time.perf_counter()
                if due_s > 0:
                    await trio.sleep(due_s)
            called = functools.partial(on_delivery, time.perf_counter())
            await producer.enqueue(arguments.topic, payloads[number % PAYLOADS_COUNT], on_delivery=called)
            if not number % 100:
                measured.show_progress()
            if failures:
                raise failures[0]
        await producer.flush()
        measured.ended_s = time.perf_counter()
    if failures:
        raise failures[0]


# ------------------------------------------------------------------------------ consume


def _measure_consume(arguments: argparse.Namespace) -> tuple[Measured, Callable[[], Awaitable[None]]]:
    # What retention takes meanwhile is measured no more, what is behind it is.
    settings = client_settings(arguments, max_poll_records=POLL_RECORDS, auto_offset_reset="earliest")
    what = "from the record's timestamp to its arrival" if arguments.follow else "waiting in a poll"
    measured = Measured(arguments.records, what)
    return measured, functools.partial(_consume, arguments, settings, measured)


async def _consume(arguments: argparse.Namespace, settings: dict[str, object], measured: Measured) -> None:
    from odradek.client import ClientTimeoutError, Consumer

    from .cluster_calls import reach_for_topic
    from .consume import isolation_level

    async with reach_for_topic(settings, arguments.topic) as calls:
        offsets = await calls.offsets(calls.partitions(arguments.topic), isolation_level(settings))
    left = {partition: found.end for partition, found in offsets.items() if found.end > found.start}
    starts = {partition: found.end if arguments.follow else found.start for partition, found in offsets.items()}
    if measured.wanted is None and not arguments.follow:
        measured.wanted = sum(found.end - found.start for found in offsets.values())
    async with Consumer(settings) as consumer:
        consumer.assign(list(starts))
        for partition, offset in starts.items():
            consumer.seek(partition, offset)
        measured.began_s = last_s = time.perf_counter()
        while arguments.follow or left:
            asked_s = time.perf_counter()
            records = await consumer.poll(timeout_ms=POLL_MS)
            now_s = time.perf_counter()
            if records:
                last_s = measured.ended_s = now_s
                _take(records, measured, None if arguments.follow else now_s - asked_s)
            elif now_s - last_s > IDLE_S_MAX:
                raise ClientTimeoutError(f"no record came for {IDLE_S_MAX:.0f} s")
            measured.show_progress()
            if arguments.records is not None and measured.records_count >= arguments.records:
                return
            for partition in [
                partition for partition, end in left.items() if await consumer.position(partition) >= end
            ]:
                del left[partition]


def _take(records: list[Any], measured: Measured, waited_s: float | None) -> None:
    """Count records; their age is the latency, unless it is how long was waited for them."""
    if waited_s is not None:
        measured.latencies.add(waited_s * _MILLISECONDS)
    now_ms = time.time_ns() / 1e6
    for record in records:
        measured.size_bytes += len(record.key or b"") + len(record.value or b"")
        if waited_s is None:
            measured.latencies.add(max(now_ms - record.timestamp, 0.0))
    measured.records_count += len(records)
