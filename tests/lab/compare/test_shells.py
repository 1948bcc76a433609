"""What is asked of the system: processes, folders, the machine; and brokers that do not start or die."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import attrs
import pytest
import trio

from odradek.kernel.errors import OdradekError
from odradek.kernel.plugin_system.manager import FoundPlugin, LoadedPlugin
from odradek.lab.compare.broker_process import BrokerFolder, serving_broker
from odradek.lab.compare.folders import forget_pages, size_bytes
from odradek.lab.compare.load import Flow
from odradek.lab.compare.machine_facts import machine_facts
from odradek.lab.compare.one_run import OneRun, empty_folder, was_in_memory
from odradek.lab.compare.process_use import ProcessUse, process_use
from odradek.lab.compare.record_plan import RecordPlan
from odradek.lab.compare.workload import Workload
from tests.lab.compare.results import combination


def proc_of(
    tmp_path: Path, process_id: int, *, ticks: int, read: int, written: int, children: str = "", state: str = "S"
) -> None:
    """Write what Linux tells of a process."""
    process = tmp_path / str(process_id)
    (process / "task" / str(process_id)).mkdir(parents=True)
    (process / "task" / str(process_id) / "children").write_text(children)
    numbers = " ".join(["0"] * 10 + [str(ticks)] * 4 + ["0"] * 20)
    for place in (process, process / "task" / str(process_id), process / "task" / "77"):
        place.mkdir(exist_ok=True)
        (place / "stat").write_text(f"{process_id} (a (strange) name) {state} {numbers}\n")
    (process / "io").write_text(f"rchar: 1\nread_bytes: {read}\nwrite_bytes: {written}\n")
    (process / "status").write_text("Name:\tpython\nVmHWM:\t    2048 kB\n")


def test_what_a_process_and_its_children_use_is_added(tmp_path: Path) -> None:
    proc_of(tmp_path, 1, ticks=10, read=100, written=1_000, children="2 ", state="D")
    proc_of(tmp_path, 2, ticks=20, read=10, written=2, children="3")
    proc_of(tmp_path, 3, ticks=30, read=1, written=1)

    use = process_use(1, tmp_path)
    second = os.sysconf("SC_CLK_TCK")

    assert use.cpu_s == pytest.approx(240 / second)
    assert attrs.evolve(use, cpu_s=None) == ProcessUse(None, 111, 1_003, 2048 * 1024, 2, works_aside=True)


def test_where_the_system_tells_nothing_nothing_is_known(tmp_path: Path) -> None:
    unknown = process_use(1, tmp_path)

    assert unknown == ProcessUse()
    assert unknown.cpu_since(ProcessUse(cpu_s=1.0)) is None
    assert ProcessUse(cpu_s=3.0, read_bytes=5, written_bytes=7).written_since(ProcessUse(written_bytes=2)) == 5


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_this_process_uses_something() -> None:
    use = process_use(os.getpid())

    assert use.cpu_s is not None
    assert use.cpu_s > 0
    assert use.memory_bytes_max is not None
    assert use.memory_bytes_max > 1_000_000


def test_a_folder_has_the_size_that_its_files_take(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_bytes(b"x" * 10_000)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(50_000_000)

    assert 10_000 <= size_bytes(tmp_path) < 1_000_000
    assert size_bytes(tmp_path / "nowhere") == 0


def test_files_stay_as_they_are_when_the_system_forgets_them(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 10_000)
    is_forgotten = forget_pages(tmp_path)

    assert is_forgotten == hasattr(os, "posix_fadvise")
    assert (tmp_path / "file").read_bytes() == b"x" * 10_000


def test_a_system_that_cannot_forget_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fadvise", raising=False)

    assert not forget_pages(tmp_path)


@pytest.mark.parametrize(
    ("read_bytes", "arrived_bytes", "disk_bytes", "was"),
    [
        (0, 1_000_000, 1_100_000, True),
        (50_000, 1_000_000, 1_100_000, True),
        (1_000_000, 1_000_000, 1_100_000, False),
        (20_000, 1_000_000, 25_000, False),  # compressed
        (0, 1_000_000, 0, False),  # it comes from elsewhere: a bucket
        (0, 0, 1_000, False),  # nothing was read
        (None, 1_000_000, 1_100_000, False),  # nobody tells
    ],
)
def test_a_cold_read_that_took_next_to_nothing_from_disk_was_a_warm_one(
    read_bytes: float | None, arrived_bytes: int, disk_bytes: int, was: bool
) -> None:
    assert was_in_memory(read_bytes, arrived_bytes, disk_bytes) is was


@pytest.mark.parametrize(
    ("caches_dropped", "read_bytes", "amplification"),
    [(True, 300_000, 1.5), (True, 0, None), (True, None, None), (False, 300_000, None)],
)
def test_what_a_cold_read_read_is_not_known_where_files_stay_in_memory(
    tmp_path: Path, caches_dropped: bool, read_bytes: float | None, amplification: float | None
) -> None:
    one = combination("segment", keys=("odradek.storage",))
    workload = Workload("few", records=6, paced_records=2)
    folder = empty_folder(tmp_path / "run")
    folder.data.mkdir()
    (folder.data / "log").write_bytes(b"x" * 300_000)
    run = OneRun(one, RecordPlan(workload, random.Random(3)), "run", folder, None, lambda phase, share: None)
    run.note_cold_read(Flow(6, 200_000, 2.0), read_bytes, caches_dropped=caches_dropped)

    assert run.figures == {"cold_read_bytes": 100_000, "read_amplification": amplification}
    is_warm = not caches_dropped or read_bytes == 0
    assert [note for note in run.notes if "the cold reads are warm ones" in note] == run.notes
    assert len(run.notes) == is_warm


def test_a_folder_for_a_run_is_empty(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "left").write_text("by the last one")
    folder = empty_folder(tmp_path / "run")

    assert sorted(path.name for path in folder.path.iterdir()) == ["store"]


def test_facts_of_the_machine_are_texts(tmp_path: Path) -> None:
    facts = machine_facts(tmp_path, [LoadedPlugin(FoundPlugin("one", "a.b", "stranger 1.0"), "", ())])

    assert facts["plugins from"] == "stranger 1.0"
    assert "trio" in facts["Python"]
    assert all(facts.values())


def test_a_machine_that_tells_nothing_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.lab.compare.machine_facts.PROC", tmp_path / "nowhere")
    monkeypatch.delattr(os, "getloadavg", raising=False)
    facts = machine_facts(tmp_path, [])

    assert facts["memory"] == facts["file system"] == facts["load when it began"] == facts["plugins from"] == "-"
    assert facts["processor"]


def test_a_broker_that_does_not_start_says_why(tmp_path: Path) -> None:
    async def start() -> None:
        async with serving_broker(BrokerFolder(tmp_path), {"segment.byte": "1"}, None):
            raise AssertionError("it serves")

    with pytest.raises(
        OdradekError, match=r"the broker did not start: odradek: --set segment\.byte: unknown broker key"
    ):
        trio.run(start)


def test_clients_of_a_broker_that_dies_do_not_wait_for_it(tmp_path: Path) -> None:
    async def start() -> None:
        async with serving_broker(BrokerFolder(tmp_path), {}, None) as broker:
            os.kill(broker.process_id, 9)
            await trio.sleep_forever()

    with pytest.raises(ExceptionGroup) as raised:
        trio.run(start)

    assert raised.group_contains(OdradekError, match="the broker ended by itself, with status -9")


def test_a_broker_is_killed_when_nobody_needs_it(tmp_path: Path) -> None:
    async def start() -> int:
        async with serving_broker(BrokerFolder(tmp_path), {}, None) as broker:
            assert broker.started_s > 0
            return broker.process_id

    process_id = trio.run(start)

    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
