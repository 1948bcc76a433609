"""`odradek demo`: the whole of it once, and its parts."""

import io
import json
import os
import re
import socket
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
import pytest

from odradek.cli.demo import group_chapter, story, transaction_chapter
from odradek.cli.demo.broker_process import BrokerProcess
from odradek.cli.demo.data import DemoRecord, checksum, first_at_or_after, keys_out_of_order, record_of, segments_of
from odradek.cli.demo.group_work import Act, GroupRun, Share
from odradek.cli.demo.scene import Scene
from odradek.cli.demo.stage import Stage
from odradek.cli.demo.transaction_work import Moment
from odradek.cli.demo.zones import Transition
from odradek.cli.group_offsets import PartitionProgress
from odradek.client.admin_group_values import GroupMemberDescription
from odradek.kernel.errors import OdradekError
from odradek.kernel.types import TopicPartition


@pytest.fixture(scope="module")
def neighbour() -> Iterator[socket.socket | None]:
    """Listen where a broker of the user's would: 127.0.0.1:9092; None where somebody does already."""
    try:
        listener = socket.create_server(("127.0.0.1", 9092))
    except OSError:
        yield None
    else:
        with listener:
            listener.setblocking(False)
            yield listener


@pytest.fixture(scope="module")
def told(neighbour: socket.socket | None) -> subprocess.CompletedProcess[str]:
    """Run the demo as a script would: its output is no terminal.

    Somebody else has the port that brokers have, and the user's own settings are for that one.
    """
    command = [sys.executable, "-m", "odradek", "demo"]
    environment = {
        **os.environ,
        "ODRADEK_LISTENERS": "PLAINTEXT://127.0.0.1:9092",
        "ODRADEK_NUM_PARTITIONS": "no number",
    }
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_every_check_holds_and_the_status_says_so(told: subprocess.CompletedProcess[str]) -> None:
    assert told.returncode == 0, told.stdout + told.stderr
    assert "All 18 checks hold" in told.stdout
    assert told.stderr == ""


def test_it_leaves_alone_who_listens_where_brokers_do(
    told: subprocess.CompletedProcess[str], neighbour: socket.socket | None
) -> None:
    assert "127.0.0.1:9092" not in told.stdout
    if neighbour is None:
        return  # what was there has no word in this: that the demo ran beside it says enough
    with pytest.raises(BlockingIOError):
        neighbour.accept()  # nobody knocked


def test_the_origin_of_the_data_is_named(told: subprocess.CompletedProcess[str]) -> None:
    text = " ".join(told.stdout.split())

    assert f"The IANA time zone database, as the PyPI package tzdata {version('tzdata')} ships it" in text


def test_the_output_is_plain_where_no_terminal_is(told: subprocess.CompletedProcess[str]) -> None:
    assert {char for char in told.stdout if unicodedata.category(char) == "Cc"} == {"\n"}
    assert max(map(len, told.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    "promised",
    [
        "tzdata 20",
        "America/New_York",
        "acknowledged",
        "none lost, none twice",
        "first offset",
        "time index",
        "clara leaves",
        "has left",
        "each once, and in order",
        "last stable",
        "read_uncommitted",
        "kill -9",
    ],
)
def test_what_a_reader_should_see_is_there(told: subprocess.CompletedProcess[str], promised: str) -> None:
    assert promised in told.stdout


def test_lag_goes_to_zero(told: subprocess.CompletedProcess[str]) -> None:
    (columns, *rows) = [line.split() for line in told.stdout.partition("At half-way")[2].splitlines()[2:7]]

    assert columns == ["partition", "log", "end", "committed", "lag", "then", "committed", "then", "lag"]
    assert [row[5] for row in rows] == ["0"] * 4
    assert all(row[3] != "0" and row[1] == row[4] for row in rows)


def test_a_transaction_aborts_and_one_commits(told: subprocess.CompletedProcess[str]) -> None:
    is_open, aborted, committed = (
        [int(cell.replace(",", "")) for cell in re.findall(r"  ([\d,]+)\b", found[0])]
        for found in (re.search(rf"^   {name} .*$", told.stdout, re.MULTILINE) for name in TRANSACTIONS)
        if found is not None
    )
    written, zones = is_open[0], committed[3]

    assert is_open == [written, 0, written, 0]
    assert aborted == [written + 1, written + 1, written, 0]
    assert committed[:4] == [written + zones + 2, written + zones + 2, written + zones, zones]
    assert committed[4] > 36_000


TRANSACTIONS = ("first, open", "first, aborted", "second, committed")


def test_nothing_stays_behind(told: subprocess.CompletedProcess[str]) -> None:
    found = re.search(r"(\S+/odradek-demo-\w+)/data", told.stdout)

    assert found is not None
    assert not Path(found[1]).exists()


def test_a_check_that_fails_fails_the_demo(
    monkeypatch: pytest.MonkeyPatch, command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken_story(stage: Stage, *, keeps_files: bool, now_s: int) -> None:
        stage.check("two and two is five", holds=False, detail="it is four")

    monkeypatch.setattr(story, "run_story", broken_story)
    done = command.run("demo")

    assert done.status == 1
    assert done.err == "odradek: the demo found: two and two is five: it is four\n"


def test_a_terminal_gets_colours_and_an_ascii_one_no_other_signs() -> None:
    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    stage = Stage(shown)
    stage.open("Title", "text")
    stage.table(("a", "b"), [(1, "x")])
    stage.check("it holds", holds=True)
    stage.check("it does not", holds=False)
    stage.close("the end")
    shown.seek(0)

    assert "ok it holds" in shown.read()
    assert stage.failed_checks == ["it does not"]


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data", tmp_path / "log", {"num.partitions": "none"})

    with pytest.raises(OdradekError, match=r"did not start: .*num\.partitions"):
        broker.start()


def test_a_killed_broker_starts_again(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data", tmp_path / "log", {})
    for end in (broker.kill, broker.stop):
        assert re.fullmatch(r"127\.0\.0\.1:\d+", broker.start())
        end()
    broker.stop()

    assert broker.process_id == 0


RECORD = record_of(Transition("Europe/Paris", -100, 561, 0, "WET", False))


def test_a_change_becomes_a_record_keyed_by_its_zone() -> None:
    assert RECORD.key == b"Europe/Paris"
    assert RECORD.timestamp == 0  # Kafka knows no time before 1970
    assert RECORD.change == {
        "zone": "Europe/Paris",
        "at": "1969-12-31T23:58:20Z",
        "before": "+00:09:21",
        "after": "+00:00",
        "abbreviation": "WET",
        "dst": False,
    }


def test_checksums_tell_order_and_boundaries_apart() -> None:
    one, other = DemoRecord(b"a", b"bc", 1), DemoRecord(b"ab", b"c", 1)

    assert len({checksum([one]), checksum([other]), checksum([one, other]), checksum([other, one]), checksum([])}) == 5


def test_histories_out_of_order_or_in_two_partitions_are_found() -> None:
    early, late = (record_of(Transition(zone, at, 0, 60, "X", True)) for zone, at in (("A", 10), ("A", 20)))

    assert keys_out_of_order({0: [early, late]}) == []
    assert keys_out_of_order({0: [late, early]}) == ["A"]
    assert keys_out_of_order({0: [early], 1: [late]}) == ["A"]


def test_the_first_from_a_time_on_is_found() -> None:
    records = [DemoRecord(b"", b"", timestamp) for timestamp in (5, 3, 9)]

    assert first_at_or_after(records, 4) == records[0]
    assert first_at_or_after(records, 10) is None


def test_segments_are_read_from_a_dump() -> None:
    rows = [
        {"file": "d/00000000000000000000.log", "kind": "batch", "count": 3, "size": 100},
        {"file": "d/00000000000000000000.index", "kind": "index", "offset": 2, "position": 50},
        {"file": "d/00000000000000000003.log", "kind": "problem", "reason": "torn"},
        {"file": "d/leader-epoch-checkpoint", "kind": "epoch"},
    ]
    (segment,), problems = segments_of(map(json.dumps, rows))

    assert (segment.records_count, segment.size_bytes, segment.entries) == (3, 100, ((2, 50),))
    assert len(problems) == 1


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Return a scene with two records in one partition, without a broker."""
    stage = Stage(io.StringIO())
    records = [record_of(Transition("Europe/Paris", at, 0, 60, "X", True)) for at in (10, 20)]
    broker = BrokerProcess(tmp_path / "data", tmp_path / "log", {})
    return Scene(stage, broker, tmp_path, 0, records=records, by_partition={0: records})


def act(lag: int, *, readers: str = "a", by_broker: str = "a") -> Act:
    """Return how a group stands in one partition of two records."""
    member = GroupMemberDescription("id", None, by_broker, "", {})
    progress = PartitionProgress(TopicPartition("t", 0), 2 - lag, 2, lag, member)
    return Act(0.1, 1, tuple(Share(name, (0,), 2 - lag) for name in readers), (progress,))


@pytest.mark.parametrize(
    ("run", "failed"),
    [
        (GroupRun(act(1), act(1), act(0), {0: [0, 1]}), []),
        (GroupRun(act(1), act(1, readers="ab"), act(0), {0: [0, 1]}), ["each time every partition had one reader"]),
        (GroupRun(act(1), act(1, by_broker="b"), act(0), {0: [0, 1]}), ["each time every partition had one reader"]),
        (GroupRun(act(1), act(1), act(0), {0: [0, 1, 1]}), ["the group read 3 records"]),
        (GroupRun(act(1), act(1), act(0), {0: [1]}), ["the group read 1 records"]),
        (GroupRun(act(1), act(1), act(1), {0: [0, 1]}), ["lag went from 1 to 1"]),
    ],
)
def test_what_a_group_does_wrong_is_found(scene: Scene, run: GroupRun, failed: list[str]) -> None:
    scene.group_run = run
    group_chapter.check(scene)

    assert len(scene.stage.failed_checks) == len(failed)
    assert all(map(str.startswith, scene.stage.failed_checks, failed))


HALF = ((b"Europe/Paris", 1),)
WHOLE = ((b"Europe/Paris", 2),)
OPEN = Moment("open", 1, 0, HALF, (), {})
ABORTED = Moment("aborted", 2, 2, HALF, (), {})
COMMITTED = Moment("committed", 4, 4, HALF + WHOLE, WHOLE, {0: 2})


@pytest.mark.parametrize(
    ("moments", "failed_count"),
    [
        ((OPEN, ABORTED, COMMITTED), 0),
        ((attrs.evolve(OPEN, committed=HALF), ABORTED, COMMITTED), 1),
        ((OPEN, attrs.evolve(ABORTED, offsets={0: 1}), COMMITTED), 1),
        ((OPEN, attrs.evolve(ABORTED, last_stable_offset=0), COMMITTED), 1),
        ((OPEN, ABORTED, attrs.evolve(COMMITTED, committed=HALF + WHOLE)), 2),
        ((OPEN, ABORTED, attrs.evolve(COMMITTED, uncommitted=WHOLE)), 1),
        ((OPEN, ABORTED, attrs.evolve(COMMITTED, offsets={})), 1),
    ],
)
def test_what_transactions_do_wrong_is_found(
    scene: Scene, moments: tuple[Moment, Moment, Moment], failed_count: int
) -> None:
    transaction_chapter.check(scene, *moments)

    assert len(scene.stage.failed_checks) == failed_count


@pytest.mark.sweep
def test_the_demo_takes_a_few_seconds() -> None:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "odradek", "demo"], stdout=subprocess.DEVNULL, timeout=60, check=True)

    assert time.perf_counter() - began < 15
