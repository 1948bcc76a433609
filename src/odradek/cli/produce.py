"""Shell: `odradek produce`: records from files or standard input into a topic."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.kernel.errors import ConfigError
from odradek.kernel.machine.progress import ProgressLine, part_text
from odradek.lab.compare.samples import Throughput

from . import note
from .offset_spec import parse_moment
from .options import add_client_options, client_settings, document, natural
from .output import plural, print_json, size_text
from .record_format import unescape
from .record_lines import DelimitedReader, JsonReader

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from io import FileIO

    from odradek.client import ClientError, Producer, RecordMetadata

    from .record_lines import ReadRecord

CHUNK_BYTES: Final = 1 << 16
STANDARD_INPUT: Final = "-"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    document(
        parser,
        "Write records to a topic, one from each line of standard input or of files. It returns when all are "
        "acknowledged by all in-sync replicas; a record that cannot be written ends it with status 1.",
        [
            ("produce orders < orders.txt", "each line is a value"),
            ("produce orders -K : < orders.txt", "lines such as customer-7:3 apples"),
            ("produce orders -k customer-7 -H source=shop invoice.pdf --whole", "a file is one record"),
            ("consume orders --json | odradek produce copy --json", "keys, headers, timestamps and all"),
            ("produce orders -X linger.ms=50 -z zstd big.log", "larger batches, compressed"),
        ],
        notes=r"""
        Delimiters may be written as in C: \t, \n, \x1f. A line of JSON is an object with
        "value" and, as needed, "key", "headers", "timestamp" and "partition"; bytes
        that are no UTF-8 are {"base64": "..."}.
        """,
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("files", nargs="*", metavar="FILE", help="read these; - is standard input, the default")
    what = parser.add_argument_group("what is read")
    what.add_argument("-D", "--delimiter", default="\\n", metavar="TEXT", help="what ends a record (default \\n)")
    what.add_argument("-K", "--key-delimiter", metavar="TEXT", help="what stands between key and value")
    what.add_argument("-Z", "--null", action="store_true", help="an empty key or value is null")
    what.add_argument("--whole", action="store_true", help="a file is one record")
    what.add_argument("--json", action="store_true", help="a line is a record as JSON, as `consume --json` writes it")
    how = parser.add_argument_group("what is written")
    how.add_argument("-k", "--key", metavar="TEXT", help="the key of records that bring none")
    how.add_argument(
        "-H", "--header", action="append", default=[], metavar="NAME=VALUE", help="a header of every record"
    )
    how.add_argument("-p", "--partition", type=natural, metavar="N", help="default: by the key")
    how.add_argument("-t", "--timestamp", metavar="MOMENT", help="milliseconds since 1970, or an ISO 8601 date")
    how.add_argument(
        "-z", "--compress", choices=("none", "gzip", "snappy", "lz4", "zstd"), metavar="CODEC", help="gzip, snappy, ..."
    )
    how.add_argument("--create", action="store_true", help="create the topic if it is not there")
    parser.add_argument("--report", action="store_true", help="say as JSON what was written where")
    add_client_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Produce until the input ends."""
    from odradek.client import Producer

    from .running import run_interruptible

    settings = client_settings(arguments, **({"compression_type": arguments.compress} if arguments.compress else {}))
    work = _Work(arguments, Producer(settings))
    run_interruptible(work.run, settings)
    return 0


class _Work:
    """One run of the command; remembers how it goes."""

    def __init__(self, arguments: argparse.Namespace, producer: Producer) -> None:
        self._arguments = arguments
        self._producer = producer
        self._headers = tuple(_read_header(text) for text in arguments.header)
        self._timestamp = None if arguments.timestamp is None else parse_moment(arguments.timestamp)
        self._failure: ClientError | None = None
        self._written: dict[int, tuple[int, int]] = {}
        self._records_count = 0
        self._size_bytes = 0
        self._line = ProgressLine()
        self._began_s = time.perf_counter()
        self._read_bytes = 0
        self._input_bytes = _size_bytes_of(arguments.files or [STANDARD_INPUT])

    async def run(self, settings: dict[str, object]) -> None:
        """Produce everything and tell about it."""
        from .cluster_calls import reach_for_topic

        topic = self._arguments.topic
        is_created = self._arguments.create
        async with reach_for_topic(settings, topic, is_created=is_created, remedy="--create makes it") as calls:
            calls.partitions(topic, [] if self._arguments.partition is None else [self._arguments.partition])
        try:
            async with self._producer:
                for file in self._arguments.files or [STANDARD_INPUT]:
                    await self._produce_file(topic, file)
                await self._producer.flush()
        finally:
            self._line.clear()
        if self._failure is not None:
            raise self._failure
        self._tell()

    async def _produce_file(self, topic: str, file: str) -> None:
        """Produce the records of a file as soon as each is whole; the reads are made on a worker thread."""
        import trio

        reader = self._make_reader()
        with _open(file) as stream:
            is_typed = stream.isatty()
            if is_typed and sys.stderr.isatty():
                note("a record on each line; Ctrl-D ends")
            while data := await trio.to_thread.run_sync(stream.read, CHUNK_BYTES, abandon_on_cancel=True):
                for record in reader.feed(data):
                    await self._enqueue(topic, record)
                self._read_bytes += len(data)
                if not is_typed:
                    self._line.show(self._progress)
            for record in reader.finish():
                await self._enqueue(topic, record)

    def _make_reader(self) -> DelimitedReader | JsonReader:
        arguments = self._arguments
        if arguments.json:
            return JsonReader()
        return DelimitedReader(
            delimiter=b"" if arguments.whole else unescape(arguments.delimiter),
            key_delimiter=unescape(arguments.key_delimiter) if arguments.key_delimiter else None,
            key=arguments.key.encode() if arguments.key is not None else None,
            is_empty_null=arguments.null,
        )

    async def _enqueue(self, topic: str, record: ReadRecord) -> None:
        if self._failure is not None:
            raise self._failure
        partition = record.partition if self._arguments.partition is None else self._arguments.partition
        timestamp = record.timestamp if self._timestamp is None else self._timestamp
        await self._producer.enqueue(
            topic,
            record.value,
            key=record.key,
            headers=(*record.headers, *self._headers),
            partition=partition,
            timestamp=timestamp,
            on_delivery=self._on_delivery,
        )

    def _on_delivery(self, metadata: RecordMetadata | None, error: ClientError | None) -> None:
        if error is not None:
            self._failure = self._failure or error
        if metadata is not None:
            self._records_count += 1
            self._size_bytes += max(metadata.key_size_bytes, 0) + max(metadata.value_size_bytes, 0)
            first, last = self._written.get(metadata.partition, (metadata.offset, metadata.offset))
            self._written[metadata.partition] = (min(first, metadata.offset), max(last, metadata.offset))

    def _progress(self) -> str:
        """Return how much was read, and how many records of it the broker has acknowledged."""
        throughput = Throughput(self._records_count, self._size_bytes, time.perf_counter() - self._began_s)
        whole = f" of {size_text(self._input_bytes)}" if self._input_bytes else ""
        part = part_text(self._read_bytes, self._input_bytes)
        return f"{part}{size_text(self._read_bytes)}{whole}, {plural(self._records_count, 'record')}, {throughput}"

    def _tell(self) -> None:
        """Say what was written: as JSON if asked for, to a person at a terminal, else nothing."""
        if self._arguments.report:
            partitions = [
                {"partition": number, "first_offset": first, "last_offset": last}
                for number, (first, last) in sorted(self._written.items())
            ]
            print_json({"records": self._records_count, "bytes": self._size_bytes, "partitions": partitions})
        elif sys.stderr.isatty():
            where = ", ".join(
                f"partition {number}: {first}" + (f" to {last}" if last > first else "")
                for number, (first, last) in sorted(self._written.items())
            )
            what = f"{plural(self._records_count, 'record')} ({size_text(self._size_bytes)})"
            note(f"wrote {what}{f'; {where}' if where else ''}")


def _size_bytes_of(files: Sequence[str]) -> int | None:
    """Return how much is to be read; None where something is no file, and so has no end that is known."""
    total = 0
    for file in files:
        try:
            found = os.fstat(sys.stdin.fileno()) if file == STANDARD_INPUT else Path(file).stat()
        except (OSError, ValueError):
            return None  # whoever opens it says what is wrong with it
        if not stat.S_ISREG(found.st_mode):
            return None
        total += found.st_size
    return total


def _open(file: str) -> FileIO:
    """Open a file, or give standard input, which stays open.

    Unbuffered: a buffer is locked while a thread reads into it, so that one which waits for a person to type could not
    be left behind when the command is interrupted.
    """
    if file == STANDARD_INPUT:
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    return Path(file).open("rb", buffering=0)


def _read_header(text: str) -> tuple[str, bytes | None]:
    """Read `name=value`; a name alone has no value.

    Raises:
        ConfigError: The name is missing.
    """
    name, separator, value = text.partition("=")
    if not name:
        raise ConfigError("expected NAME=VALUE", where=f"--header {text}")
    return name, value.encode() if separator else None
