"""A data directory that somebody damaged: what is sound is served, what is not is named, nobody else pays."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.kernel.errors import ErrorCode

from .broker_process import BrokerProcess, Client, batch_of, broker_process
from .test_process import create, fetch, produce

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 30
VALUES = [b"%d" % number * 50 for number in range(COUNT)]
FIRST = f"{0:020}"
LOG, INDEX, TIME_INDEX = f"{FIRST}.log", f"{FIRST}.index", f"{FIRST}.timeindex"
METADATA_LOG = f"__cluster_metadata-0/{LOG}"
CLEAN_MARK = ".kafka_cleanshutdown"


def turn_over(path: Path, position: int) -> None:
    """Damage one byte."""
    content = bytearray(path.read_bytes())
    content[position] ^= 0x55
    path.write_bytes(content)


def cut(path: Path, size_bytes: int) -> None:
    """Take bytes from a file's end."""
    os.truncate(path, path.stat().st_size - size_bytes)


def extend(path: Path, garbage: bytes) -> None:
    """Put bytes behind a file's end."""
    path.write_bytes(path.read_bytes() + garbage)


REPAIRED: dict[str, Callable[[Path], object]] = {
    "an-index-damaged": lambda partition: turn_over(partition / INDEX, 9),
    "an-index-cut": lambda partition: cut(partition / INDEX, 3),
    "an-index-gone": lambda partition: (partition / INDEX).unlink(),
    "a-time-index-of-garbage": lambda partition: (partition / TIME_INDEX).write_bytes(b"\xa5" * 37),
    "a-time-index-gone": lambda partition: (partition / TIME_INDEX).unlink(),
    "leader-epochs-of-garbage": lambda partition: (partition / "leader-epoch-checkpoint").write_bytes(b"no"),
    "leader-epochs-gone": lambda partition: (partition / "leader-epoch-checkpoint").unlink(),
    "a-topic-id-of-garbage": lambda partition: (partition / "partition.metadata").write_bytes(b"no"),
    "files-of-nobody": lambda partition: (partition / "junk.log").write_bytes(b"junk"),
    "untouched": lambda partition: None,
}
"""Topic to the damage that is done to its partition: nothing of it costs a record."""

TORN: dict[str, tuple[Callable[[Path], object], int]] = {
    "the-end-torn-off": (lambda partition: cut(partition / LOG, 7), COUNT - 1),
    "a-byte-of-the-last-batch-turned-over": (lambda partition: turn_over(partition / LOG, -2), COUNT - 1),
    "zeros-behind-the-end": (lambda partition: extend(partition / LOG, bytes(4096)), COUNT),
    "garbage-behind-the-end": (lambda partition: extend(partition / LOG, b"\xa5" * 100), COUNT),
    "untouched": (lambda partition: None, COUNT),
}
"""Topic to the damage that a crash may do, and how many records are left."""

CHECKPOINTS = {
    "recovery-point-offset-checkpoint": b"\xff\x00?\n",
    "log-start-offset-checkpoint": b"no\n",
    "replication-offset-checkpoint": b"0\n7\n",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data directory of a broker that ended cleanly: a topic for every damage, an index entry a batch."""
    data = tmp_path_factory.mktemp("sound") / "data"
    with broker_process(data, "log.index.interval.bytes=1") as broker, Client(broker.address) as client:
        for topic in REPAIRED.keys() | TORN.keys():
            create(client, topic)
            for number, value in enumerate(VALUES):
                assert produce(client, topic, batch_of(value)) == (ErrorCode.NONE, number)
        broker.terminate()
    return data


@pytest.fixture
def data(sound: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    return Path(shutil.copytree(sound, tmp_path / "data"))


def crash(data: Path) -> None:
    """Make it the directory of a broker that did not end cleanly."""
    (data / CLEAN_MARK).unlink()


def serve(data: Path, expected: dict[str, int]) -> str:
    """Start a broker, see that it serves so many records of each topic and takes more; return what it said."""
    with broker_process(data) as broker:
        with Client(broker.address) as client:
            assert {topic: fetch(client, topic) for topic in expected} == {
                topic: (VALUES[:count], count) for topic, count in expected.items()
            }
            for topic, count in expected.items():
                assert fetch(client, topic, COUNT // 2) == (VALUES[COUNT // 2 : count], count)
                assert produce(client, topic, batch_of(b"more")) == (ErrorCode.NONE, count)
        status, said = broker.terminate()

    assert status == 0
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("has_crashed", [False, True], ids=["clean", "crashed"])
def test_what_can_be_built_anew_costs_no_record(data: Path, has_crashed: bool) -> None:
    for topic, do_damage in REPAIRED.items():
        do_damage(data / f"{topic}-0")
    (data / "photos").mkdir()
    if has_crashed:
        crash(data)

    said = serve(data, dict.fromkeys(REPAIRED, COUNT))

    assert "leader-epochs-of-garbage-0/leader-epoch-checkpoint" in said
    assert "a-topic-id-of-garbage-0" in said


@pytest.mark.parametrize("has_crashed", [False, True], ids=["clean", "crashed"])
def test_checkpoints_of_garbage_are_named_and_done_without(data: Path, has_crashed: bool) -> None:
    for name, content in CHECKPOINTS.items():
        (data / name).write_bytes(content)
    if has_crashed:
        crash(data)

    said = serve(data, dict.fromkeys(REPAIRED, COUNT))

    assert [name for name in CHECKPOINTS if name not in said] == []


def test_after_a_crash_a_torn_tail_is_cut_and_the_rest_served(data: Path) -> None:
    for topic, (do_damage, _) in TORN.items():
        do_damage(data / f"{topic}-0")
    crash(data)

    said = serve(data, {topic: left for topic, (_, left) in TORN.items()})

    assert [topic for topic in TORN if f"{topic}-0/{LOG}: cut" not in said] == ["untouched"]


def test_a_log_that_cannot_be_read_takes_its_own_partition_offline(data: Path) -> None:
    (data / "untouched-0" / LOG).unlink()
    (data / "untouched-0" / LOG).mkdir()

    with broker_process(data) as broker:
        with Client(broker.address) as client:
            assert produce(client, "untouched", batch_of(b"more"))[0] != ErrorCode.NONE
            assert fetch(client, "an-index-gone") == (VALUES, COUNT)
            assert produce(client, "an-index-gone", batch_of(b"more")) == (ErrorCode.NONE, COUNT)
        _, said = broker.terminate()

    assert re.search("partition untouched-0 (is|goes) offline: .*Is a directory", said), said


METADATA_DAMAGE = {
    "a byte turned over": lambda data: turn_over(data / METADATA_LOG, 300),
    "the end torn off": lambda data: cut(data / METADATA_LOG, 3),
}


@pytest.mark.parametrize("has_crashed", [False, True], ids=["clean", "crashed"])
@pytest.mark.parametrize("spoil", METADATA_DAMAGE.values(), ids=METADATA_DAMAGE)
def test_damaged_metadata_stops_the_start_with_one_line(
    spoil: Callable[[Path], object], has_crashed: bool, data: Path
) -> None:
    spoil(data)
    if has_crashed:
        crash(data)
    before = {path: path.read_bytes() for path in data.glob("*/*.log")}

    broker = BrokerProcess(data)
    status, said = broker.finish()
    broker.close()

    assert status == 1
    assert re.fullmatch(r"odradek: \S+__cluster_metadata-0\S*: .*odradek topics adopt`\n", said), said
    assert {path: path.read_bytes() for path in data.glob("*/*.log")} == before


@pytest.mark.parametrize(
    ("storage", "is_emptied"),
    [("segment", False), ("segment", True), ("memory", False)],
    ids=["gone", "empty", "memory"],
)
def test_logs_without_any_metadata_stop_the_start_and_stay_as_they_are(
    data: Path, storage: str, is_emptied: bool
) -> None:
    """The metadata log's disk is not mounted or lost it, say, or another storage is tried: topics are not gone."""
    if is_emptied:
        for file in (data / "__cluster_metadata-0").iterdir():
            file.write_bytes(b"") if file.name == LOG else file.unlink()
        (
            data / "recovery-point-offset-checkpoint"
        ).unlink()  # written once a minute: it may know nothing of the log yet
    elif storage == "segment":
        shutil.rmtree(data / "__cluster_metadata-0")
    before = set(data.glob("*-0"))

    broker = BrokerProcess(data, f"odradek.storage={storage}")
    status, said = broker.finish()
    broker.close()

    assert status == 1
    assert re.search(
        rf"^odradek: there are logs \(.*-0, \.\.\.\) .* storage '{storage}'.*topics adopt`\n\Z", said, re.MULTILINE
    ), said
    assert set(data.glob("*-0*")) == before


def test_lost_meta_properties_are_told_with_what_they_must_say(data: Path) -> None:
    properties = data / "meta.properties"
    properties.unlink()
    broker = BrokerProcess(data)
    status, said = broker.finish()
    broker.close()
    found = re.search(r"if meta\.properties was lost, and written again: it must say (cluster\.id=.{22})\)\n", said)

    assert status == 2
    assert found is not None, said
    properties.write_text(re.sub("cluster.id=.*", found[1], properties.read_text()))
    with broker_process(data) as mended, Client(mended.address) as client:
        assert fetch(client, "untouched")[1] > 0


def test_logs_that_the_metadata_does_not_know_are_set_aside_and_named(data: Path) -> None:
    shutil.copytree(data / "untouched-0", data / "ghost-0")
    size = (data / "ghost-0" / LOG).stat().st_size

    with broker_process(data) as broker:
        with Client(broker.address) as client:
            create(client, "ghost")
            assert fetch(client, "ghost") == ([], 0)
        _, said = broker.terminate()

    (aside,) = data.glob("ghost-0.*-stray")
    assert (aside / LOG).stat().st_size == size
    assert str(aside) in said


def limit_file_sizes(pid: int, size_bytes: int) -> None:
    """Let a process write no file larger than this."""
    resource: Any = importlib.import_module("resource")  # Unix alone has it
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_a_full_disk_fails_what_does_not_fit_and_loses_nothing(tmp_path: Path) -> None:
    """A limit on the size of the broker's files stands for the disk: its writes fail as on a full one."""
    acknowledged: list[bytes] = []
    with broker_process(tmp_path, "log.index.size.max.bytes=4096") as broker:
        with Client(broker.address) as client:
            create(client, "large")
            create(client, "small")
            limit_file_sizes(broker.process.pid, 1 << 20)
            for number in range(20):
                value = b"%d" % number * 50_000
                error, _ = produce(client, "large", batch_of(value))
                assert error in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
                if error == ErrorCode.NONE:
                    acknowledged.append(value)
                assert produce(client, "small", batch_of(b"small")) == (ErrorCode.NONE, number)
            assert fetch(client, "small") == ([b"small"] * 20, 20)
        _, said = broker.terminate()

    assert 5 < len(acknowledged) < 20
    assert "large-0 goes offline" in said
    assert "Traceback" not in said
    with broker_process(tmp_path) as broker, Client(broker.address) as client:
        assert fetch(client, "large") == (acknowledged, len(acknowledged))
        assert produce(client, "large", batch_of(b"more")) == (ErrorCode.NONE, len(acknowledged))
