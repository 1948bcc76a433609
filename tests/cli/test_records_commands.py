"""`odradek produce` and `odradek consume` against a broker."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.cli.perf import Measured
from odradek.client import (
    Admin,
    BlockingAdmin,
    Consumer,
    ConsumerRecord,
    LogTruncationError,
    NoOffsetForPartitionError,
    TopicPartition,
)
from odradek.kernel.machine import progress
from odradek.testing.running_broker import RunningBroker

NUMBERS = itertools.count()


@pytest.fixture
def topic(odradek: Any) -> Iterator[str]:
    """Return a topic of one partition, the test's own, whose records may say that they are of 1970."""
    name = f"topic-{next(NUMBERS)}"
    odradek.ok("topics", "create", name, "-p", "1", "-c", "retention.ms=-1")
    yield name
    odradek.ok("topics", "delete", name)


def wait_until_produced(broker: RunningBroker, topic: str) -> None:
    """Return when a topic has a record."""
    command = [sys.executable, "-m", "odradek", "consume", topic, "--follow", "-c", "1", "-b", broker.bootstrap]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=30)


@pytest.fixture
def produce(odradek: Any, topic: str, tmp_path: Path) -> Any:
    """Return what produces text, with options."""

    def run(text: str | bytes, *options: str) -> Any:
        file = tmp_path / "input"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return odradek("produce", topic, str(file), *options)

    return run


def test_lines_come_back_as_lines(odradek: Any, topic: str, produce: Any) -> None:
    assert produce("a\nb\nc").status == 0
    assert odradek.ok("consume", topic).out == "a\nb\nc\n"


def test_keys_headers_timestamps_and_nulls_come_back(odradek: Any, topic: str, produce: Any) -> None:
    produce("k1:v1\nk2:\n", "-K", ":", "-Z", "-H", "h=x", "-H", "n", "-t", "2007-03-11T07:00:00Z")
    done = odradek.ok("consume", topic, "-f", "%t %p %o %T %k %K %s %S %h\n", "-Z", "NULL")

    assert done.out.splitlines() == [
        f"{topic} 0 0 1173596400000 k1 2 v1 2 h=x,n=NULL",
        f"{topic} 0 1 1173596400000 k2 2 NULL -1 h=x,n=NULL",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-o", "beginning"], "0 1 2 3 4 5 6 7 8 9"),
        (["-o", "end"], ""),
        (["-o", "-3"], "7 8 9"),
        (["-o", "4", "-u", "6"], "4 5"),
        (["-o", "4", "-u", "-2"], "4 5 6 7"),
        (["-o", "@6000"], "6 7 8 9"),
        (["-o", "@1970-01-01T00:00:03Z", "-u", "@1970-01-01T00:00:05Z"], "3 4"),
        (["-o", "@2100-01-01"], ""),
        (["-c", "2"], "0 1"),
        (["-o", "2", "-c", "1", "--follow"], "2"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_any_place_can_be_read(odradek: Any, topic: str, produce: Any, options: list[str], expected: str) -> None:
    lines = [json.dumps({"value": str(number), "timestamp": number * 1000}) for number in range(10)]
    assert produce("\n".join(lines), "--json").status == 0
    done = odradek.ok("consume", topic, "-p", "0", *options)

    assert done.out.split() == expected.split()


def test_json_goes_round(odradek: Any, topic: str, produce: Any) -> None:
    lines = [
        {"key": "k", "value": {"base64": "/w=="}, "headers": [["h", "x"], ["n", None]], "timestamp": 5},
        {"key": None, "value": None, "timestamp": 7},
    ]
    produce("\n".join(map(json.dumps, lines)), "--json")
    first = odradek.ok("consume", topic, "--json").out
    produce(first, "--json")
    second = odradek.ok("consume", topic, "--json", "-o", "2").out

    assert [json.loads(line) | {"offset": 0} for line in first.splitlines()] == [
        json.loads(line) | {"offset": 0} for line in second.splitlines()
    ]
    assert json.loads(first.splitlines()[0])["value"] == {"base64": "/w=="}


def test_a_whole_file_is_one_record(odradek: Any, topic: str, produce: Any) -> None:
    produce(b"\x00\n\xff", "--whole", "-k", "file")
    (line,) = odradek.ok("consume", topic, "--json").out.splitlines()

    assert json.loads(line)["value"] == {"base64": "AAr/"}
    assert json.loads(line)["key"] == "file"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression_is_a_matter_of_an_option(odradek: Any, topic: str, produce: Any, codec: str) -> None:
    assert produce("abc\n" * 100, "-z", codec).status == 0
    assert odradek.ok("consume", topic).out == "abc\n" * 100


def test_a_report_tells_where_records_went(produce: Any) -> None:
    report = produce("a\nbc\n", "--report").json

    assert report == {"records": 2, "bytes": 3, "partitions": [{"partition": 0, "first_offset": 0, "last_offset": 1}]}


def test_standard_input_is_read(odradek: Any, topic: str, cli_broker: RunningBroker) -> None:
    command = [sys.executable, "-m", "odradek", "produce", topic, "-b", cli_broker.bootstrap]
    subprocess.run(command, input=b"from\nstdin\n", check=True)

    assert odradek.ok("consume", topic, "-D", ",").out == "from,stdin,"


@pytest.mark.parametrize("verb", ["produce", "consume"])
def test_a_mistyped_topic_is_answered_with_the_nearest(odradek: Any, verb: str) -> None:
    odradek.ok("topics", "create", "temperatures", "--if-not-exists")
    done = odradek(verb, "temperature")

    assert (done.status, done.out) == (1, "")
    assert "there is no topic 'temperature'; did you mean 'temperatures'?" in done.err


@pytest.mark.parametrize("verb", [("produce",), ("perf", "produce")], ids=" ".join)
def test_who_writes_to_a_topic_that_is_not_there_hears_how_to_make_it(odradek: Any, verb: tuple[str, ...]) -> None:
    done = odradek(*verb, "no-such-topic")

    assert (done.status, done.out) == (1, "")
    assert done.err.endswith("there is no topic 'no-such-topic' (--create makes it)\n")


def test_a_topic_may_be_created_on_the_way(odradek: Any, tmp_path: Path) -> None:
    file = tmp_path / "one"
    file.write_text("x")
    odradek.ok("produce", "made-on-the-way", str(file), "--create")

    assert odradek.ok("consume", "made-on-the-way").out == "x\n"


def test_a_partition_that_is_not_there_is_told_at_once(odradek: Any, topic: str, produce: Any) -> None:
    produced, consumed = produce("x", "-p", "7"), odradek("consume", topic, "-p", "7")

    assert produced.status == consumed.status == 1
    assert produced.err == consumed.err
    assert "has 1 partitions, there is no 7" in consumed.err


def test_a_line_that_is_no_record_is_named(produce: Any) -> None:
    done = produce('{"value": "fine"}\nnonsense\n', "--json")

    assert done.status == 2
    assert done.err.startswith("odradek: line 2: ")


def test_a_record_that_is_too_large_is_one_line(produce: Any) -> None:
    done = produce("x" * 2000, "--whole", "-X", "max.request.size=1000")

    assert (done.status, done.err.count("\n")) == (1, 1)


def test_a_record_that_the_broker_refuses_is_one_line(odradek: Any, tmp_path: Path) -> None:
    odradek.ok("topics", "create", "small-ones", "-c", "max.message.bytes=100", "--if-not-exists")
    file = tmp_path / "large"
    file.write_bytes(b"x" * 1000)
    done = odradek("produce", "small-ones", str(file), "--whole")

    assert done.status == 1
    assert done.err.startswith("odradek: MESSAGE_TOO_LARGE: ")
    assert done.err.count("\n") == 1


def test_a_file_that_is_not_there_is_one_line(odradek: Any, topic: str) -> None:
    done = odradek("produce", topic, "/no/such/file")

    assert (done.status, done.err) == (1, "odradek: /no/such/file: No such file or directory\n")


@pytest.mark.parametrize(
    "options",
    [
        ["-f", "%q"],
        ["-o", "soon"],
        ["-c", "0"],
        ["--json", "-f", "%s"],
        ["-X", "auto.offset.reset=nonsense"],
        ["-X", "auto.offset.reset=by_duration:soon"],
    ],
    ids=" ".join,
)
def test_wrong_options_are_wrong_usage(odradek: Any, topic: str, options: list[str]) -> None:
    assert odradek("consume", topic, *options).status == 2


def test_following_ends_quietly_when_interrupted(topic: str, produce: Any, cli_broker: RunningBroker) -> None:
    produce("x\n")
    command = [sys.executable, "-m", "odradek", "consume", topic, "--follow", "-b", cli_broker.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"x\n"
        os.kill(process.pid, signal.SIGINT)

        assert process.wait(10) == 130
        assert process.stderr.read() == b""


def test_waiting_for_input_ends_when_interrupted(topic: str, cli_broker: RunningBroker) -> None:
    command = [sys.executable, "-m", "odradek", "produce", topic, "-b", cli_broker.bootstrap]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"typed\n")
        process.stdin.flush()
        wait_until_produced(cli_broker, topic)
        os.kill(process.pid, signal.SIGINT)

        assert process.wait(10) == 130
        assert process.stderr.read() == b""


def test_a_reader_who_leaves_early_ends_it_quietly(topic: str, produce: Any, cli_broker: RunningBroker) -> None:
    produce(("y" * 100 + "\n") * 20_000)
    command = f"'{sys.executable}' -m odradek consume {topic} -b {cli_broker.bootstrap} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("y" * 100 + "\n", "")


@pytest.fixture
def slow_reader(odradek: Any, topic: str, produce: Any, cli_broker: RunningBroker) -> Iterator[Any]:
    """Return a `consume` that has begun with 2,000 lines and holds no more of them than fit into a pipe."""
    lines = "".join(f"{number:099}\n" for number in range(2_000))
    assert produce(lines, "-X", "batch.size=1000").status == 0
    small = ("max.partition.fetch.bytes=1000", "fetch.max.bytes=1000", "max.poll.records=10")
    command = [sys.executable, "-m", "odradek", "consume", topic, "-b", cli_broker.bootstrap]
    command += [word for setting in small for word in ("-X", setting)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = b""
            while len(first) < 100:  # no more than the first line: `communicate` passes over what a file holds back
                read = os.read(process.stdout.fileno(), 100 - len(first))
                assert read
                first += read
            assert int(first) == 0
            yield process
        finally:
            process.kill()


def test_what_is_gone_before_it_is_read_is_told_and_what_is_behind_it_comes(
    slow_reader: Any, topic: str, cli_broker: RunningBroker
) -> None:
    with BlockingAdmin({"bootstrap.servers": cli_broker.bootstrap}) as admin:
        assert admin.delete_records({TopicPartition(topic, 0): 1_500}) == {TopicPartition(topic, 0): 1_500}
    out, said = slow_reader.communicate(timeout=60)
    numbers = [0, *map(int, out.splitlines())]
    read_count = len(numbers) - 500

    assert 0 < read_count < 1_500
    assert numbers == [*range(read_count), *range(1_500, 2_000)]
    assert said == f"odradek: {topic}-0: the offsets from {read_count} to 1499 were gone before they were read\n"
    assert slow_reader.returncode == 1


def test_a_log_that_is_shorter_than_what_was_read_of_it_is_told(slow_reader: Any, odradek: Any, topic: str) -> None:
    """As after the election of a leader that lacked records, or where a topic was made anew."""
    odradek.ok("topics", "delete", topic)
    odradek.ok("topics", "create", topic, "-p", "1")
    out, said = slow_reader.communicate(timeout=60)
    numbers = [0, *map(int, out.splitlines())]

    assert numbers == [*range(len(numbers))]
    assert said == (
        f"odradek: {topic}-0: its log was cut at 0 after it was read up to {len(numbers)}; it is read on from there\n"
    )
    assert slow_reader.returncode == 1


class OfALogThatLoses(Consumer):
    """Somebody deletes records before its first poll, or behind it; it gets one record a poll."""

    bootstrap = ""
    polls = 0
    lost_at_poll = 1
    lost_count = 0

    async def poll(self, *, timeout_ms: int | None = None, records_max: int | None = None) -> list[ConsumerRecord]:
        OfALogThatLoses.polls += 1
        if self.polls == self.lost_at_poll:
            (partition,) = self.assignment
            async with Admin({"bootstrap.servers": self.bootstrap}) as admin:
                await admin.delete_records({partition: self.lost_count})
            self.seek(partition, self.polls - 1)  # what was fetched ahead is fetched again
        return await super().poll(timeout_ms=timeout_ms, records_max=1)


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch, produce: Any, cli_broker: RunningBroker) -> Any:
    """Return what lets ten lines be lost in part, as a `consume` comes to its so many-th poll."""

    def lose(count: int, *, at_poll: int) -> None:
        produce("".join(f"{number}\n" for number in range(10)))
        monkeypatch.setattr("odradek.client.Consumer", OfALogThatLoses)
        monkeypatch.setattr(OfALogThatLoses, "bootstrap", cli_broker.bootstrap)
        monkeypatch.setattr(OfALogThatLoses, "polls", 0)
        monkeypatch.setattr(OfALogThatLoses, "lost_at_poll", at_poll)
        monkeypatch.setattr(OfALogThatLoses, "lost_count", count)

    return lose


@pytest.mark.parametrize(
    ("options", "at_poll", "out", "gone"),
    [
        ([], 1, "789", ""),
        (["-o", "0"], 1, "789", "0 to 6"),
        ([], 3, "01789", "2 to 6"),
        (["-u", "5"], 3, "01", "2 to 4"),
        (["-X", "auto.offset.reset=none"], 3, "01789", "2 to 6"),
        (["-X", "auto.offset.reset=earliest"], 3, "01789", ""),
        (["-X", "auto.offset.reset=latest"], 3, "01", ""),
        (["-X", "auto.offset.reset=by_duration:PT1H"], 3, "01789", ""),
    ],
    ids=[
        "a log that begins later",
        "what was named",
        "what was to be read next",
        "no more than was asked for",
        "what no setting says how to go on behind",
        "nothing, with earliest",
        "nothing, with latest",
        "nothing, with by_duration",
    ],
)
def test_what_is_told_to_be_gone_is_what_was_wanted(
    odradek: Any, topic: str, losing: Any, options: list[str], at_poll: int, out: str, gone: str
) -> None:
    losing(7, at_poll=at_poll)
    done = odradek("consume", topic, *options, "-D", "")

    assert done.out == out
    assert done.err == (
        f"odradek: {topic}-0: the offsets from {gone} were gone before they were read\n" if gone else ""
    )
    assert done.status == (1 if gone else 0)


class WhoseBrokerIsBehind(Consumer):
    """Its second poll finds nothing where it stands, though nothing is gone: its broker does not know all yet."""

    polls = 0

    async def poll(self, *, timeout_ms: int | None = None, records_max: int | None = None) -> list[ConsumerRecord]:
        WhoseBrokerIsBehind.polls += 1
        if self.polls == 2:
            raise NoOffsetForPartitionError(tuple(self.assignment))
        return await super().poll(timeout_ms=timeout_ms, records_max=1)


def test_a_broker_that_does_not_know_all_of_a_log_yet_is_asked_again(
    odradek: Any, topic: str, produce: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce("a\nb\n")
    monkeypatch.setattr("odradek.client.Consumer", WhoseBrokerIsBehind)
    monkeypatch.setattr(WhoseBrokerIsBehind, "polls", 0)
    done = odradek("consume", topic)

    assert (done.status, done.out, done.err) == (0, "a\nb\n", "")


class OfALogThatIsCut(Consumer):
    """Its second poll finds that a new leader has nothing of what the first one brought."""

    polls = 0
    cut_at: int | None = 0

    async def poll(self, *, timeout_ms: int | None = None, records_max: int | None = None) -> list[ConsumerRecord]:
        OfALogThatIsCut.polls += 1
        if self.polls == 2:
            (partition,) = self.assignment
            raise LogTruncationError(partition, 1, self.cut_at)
        return await super().poll(timeout_ms=timeout_ms, records_max=1)


@pytest.mark.parametrize(
    ("cut_at", "out", "said"),
    [
        (0, "a\na\nb\n", "its log was cut at 0 after it was read up to 1; it is read on from there"),
        (None, "a\n", "the log that was read up to 1 was cut somewhere below: seek first"),
    ],
)
def test_a_log_that_was_cut_is_read_on_from_where_that_is_known(
    odradek: Any, topic: str, produce: Any, monkeypatch: pytest.MonkeyPatch, cut_at: int | None, out: str, said: str
) -> None:
    produce("a\nb\n")
    monkeypatch.setattr("odradek.client.Consumer", OfALogThatIsCut)
    monkeypatch.setattr(OfALogThatIsCut, "polls", 0)
    monkeypatch.setattr(OfALogThatIsCut, "cut_at", cut_at)
    done = odradek("consume", topic)

    assert (done.status, done.out, done.err) == (1, out, f"odradek: {topic}-0: {said}\n")


# ------------------------------------------------------------------------------ perf


def test_throughput_and_latency_are_measured_both_ways(odradek: Any, topic: str) -> None:
    produced = odradek.ok("perf", "produce", topic, "-n", "500", "-s", "10", "--json").json
    consumed = odradek.ok("perf", "consume", topic, "--json").json

    assert (produced["records"], produced["bytes"]) == (500, 5000)
    assert (consumed["records"], consumed["bytes"]) == (500, 5000)
    assert 0 < produced["latency"]["p50_ms"] <= produced["latency"]["p99_ms"] <= produced["latency"]["max_ms"]


def test_what_is_gone_before_it_is_read_ends_no_measure(odradek: Any, topic: str, losing: Any) -> None:
    losing(7, at_poll=3)

    assert odradek.ok("perf", "consume", topic, "--json").json["records"] == 5


def test_the_measures_for_people_are_two_lines(odradek: Any, topic: str) -> None:
    done = odradek.ok("perf", "produce", topic, "-n", "50", "--rate", "1000")

    assert done.out.startswith("50 records, 5 kB, in 0.")
    assert "from call to acknowledgement, ms: mean " in done.out
    assert len(done.out.splitlines()) == 2


def test_an_interrupted_measure_still_reports(topic: str, cli_broker: RunningBroker) -> None:
    command = [sys.executable, "-m", "odradek", "perf", "produce", topic, "-b", cli_broker.bootstrap]
    with subprocess.Popen([*command, "--rate", "10", "-n", "9999"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        wait_until_produced(cli_broker, topic)
        os.kill(process.pid, signal.SIGINT)

        assert process.wait(10) == 130
        assert "from call to acknowledgement" in process.stdout.read()


def test_progress_is_shown_to_who_watches(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "SHOW_EVERY_S", 0)
    measured = Measured(200, "latency")
    measured.records_count = 50
    measured.show_progress()

    assert capsys.readouterr().err.startswith("\r\x1b[K 25%  50 records, ")


def test_end_to_end_is_the_age_of_new_records(
    topic: str, produce: Any, odradek: Any, cli_broker: RunningBroker
) -> None:
    command = [sys.executable, "-m", "odradek", "perf", "produce", topic, "-b", cli_broker.bootstrap]
    with subprocess.Popen([*command, "--rate", "200", "-n", "2000"], stdout=subprocess.DEVNULL) as process:
        done = odradek("perf", "consume", topic, "--follow", "-n", "50", "--json")
        process.terminate()

    assert done.status == 0
    assert done.json["latency"]["latency_of"] == "from the record's timestamp to its arrival"
    assert done.json["records"] >= 50
