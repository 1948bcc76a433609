"""`odradek demo --spark`: its parts without Spark; the whole of it where Spark is."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from odradek.cli.demo import spark_chapters, spark_job, spark_process, spark_story
from odradek.cli.demo.broker_process import BrokerProcess
from odradek.cli.demo.data import record_of
from odradek.cli.demo.spark_process import SparkJob, check_installed, quick_python
from odradek.cli.demo.spark_scene import SparkScene, weeks_until
from odradek.cli.demo.stage import Stage
from odradek.cli.demo.zones import Transition
from odradek.kernel.errors import ConfigError, OdradekError
from tests.interop.clients import skip_or_fail
from tests.waiting import until


@pytest.fixture
def scene(tmp_path: Path) -> SparkScene:
    """Return a scene with three records in two weeks, without a broker."""
    broker = BrokerProcess(tmp_path / "data", tmp_path / "log", {})
    records = [record_of(Transition("Europe/Paris", at, 0, 60, "X", True)) for at in (0, 10, 10 * 86_400)]
    return SparkScene(Stage(io.StringIO()), broker, tmp_path, 0, records=records, folder=tmp_path)


def job_of(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> SparkJob:
    """Return a job whose program is another one."""
    (folder / "another_job.py").write_text(textwrap.dedent(program))
    monkeypatch.setattr(spark_process, "MODULE", "another_job")
    return SparkJob([], folder)


def test_what_a_job_tells_is_read_and_other_lines_are_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job = job_of(monkeypatch, tmp_path, """print("a line of a library's")\nprint('{"kind": "batch"}')""")

    assert list(job.lines()) == [{"kind": "batch"}]

    job.close()


def test_pythons_of_spark_find_what_this_one_finds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/it's here")
    python = quick_python(tmp_path / "python")
    monkeypatch.setenv("PYTHONPATH", "an archive of Spark's")
    code = "import sys; print(sys.executable, *sys.path, sep='\\n')"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.splitlines()[0] == sys.executable
    assert f"{tmp_path}/it's here" in done.stdout
    assert "an archive of Spark's" not in done.stdout


def test_a_job_that_fails_says_of_what(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job = job_of(monkeypatch, tmp_path, "raise SystemExit('no such topic')")

    with pytest.raises(OdradekError, match="status 1: no such topic"):
        list(job.lines())

    job.close()


def test_what_a_job_says_of_its_failure_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job = job_of(monkeypatch, tmp_path, """print('{"kind": "failed", "error": "no topic"}')\nraise SystemExit(1)""")

    with pytest.raises(OdradekError, match=r"status 1: no topic$"):
        list(job.lines())

    job.close()


SLOW = """
    import pathlib, subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path("child").write_text(str(child.pid))
    pathlib.Path("child").rename("ready")
    time.sleep(600)
"""


def test_a_job_is_killed_with_its_children_as_soon_as_something_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    job = job_of(monkeypatch, tmp_path, SLOW)
    watcher = job.kill_when(ready.exists)

    assert list(job.lines()) == []

    watcher.join()
    job.close()
    until(lambda: not lives(int(ready.read_text())))


def lives(process_id: int) -> bool:
    """Say whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def test_a_job_that_is_given_up_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job = job_of(monkeypatch, tmp_path, "import time; time.sleep(600)")
    job.close()
    with pytest.raises(ProcessLookupError):
        os.kill(job.process_id, 0)


def test_the_checkpoint_says_what_was_planned_and_what_is_done(scene: SparkScene) -> None:
    assert scene.planned_and_done() == (0, 0)

    for name in ("offsets/0", "offsets/1", "commits/0", "commits/.0.crc"):
        path = scene.checkpoint / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    assert scene.planned_and_done() == (2, 1)


@pytest.mark.parametrize(
    ("planned", "done", "told", "is_in_the_middle"),
    [(6, 5, 5, True), (6, 5, 4, False), (6, 6, 6, False), (5, 4, 4, False), (8, 7, 7, True)],
)
def test_the_job_is_killed_in_the_middle_of_a_batch(
    scene: SparkScene, planned: int, done: int, told: int, is_in_the_middle: bool
) -> None:
    for kind, count in (("offsets", planned), ("commits", done)):
        (scene.checkpoint / kind).mkdir(parents=True)
        for number in range(count):
            (scene.checkpoint / kind / str(number)).touch()
    scene.batches = [{"id": number} for number in range(told)]

    assert spark_chapters.is_in_the_middle(scene) == is_in_the_middle


def test_weeks_begin_on_monday_and_the_first_in_which_1970_begins() -> None:
    days = (-1, 0, 3, 4, 11, 100)  # the epoch began on a Thursday
    records = [record_of(Transition("Europe/Paris", day * 86_400, 0, 60, "X", True)) for day in days]

    assert weeks_until(records, "1970-01-12") == {"1969-12-29": 2, "1970-01-05": 1, "1970-01-12": 1}


WEEKS = [["1969-12-29", 2], ["1970-01-05", 1]]


@pytest.mark.parametrize(
    ("wrong", "failed"),
    [
        ({}, []),
        ({"changes": 2}, ["Spark read all 3 records"]),
        ({"weeks": [["1969-12-29", 2]]}, ["and stands in the topic exactly once"]),
        ({"weeks": WEEKS[1:]}, ["each of 2 weeks", "and stands"]),
        ({"weeks": [["1969-12-29", 3], WEEKS[1]]}, ["each of 2 weeks"]),
        ({"weeks": [*WEEKS, WEEKS[0]]}, ["and stands in the topic exactly once"]),
        ({"weeks": []}, ["each of 0 weeks", "and stands"]),
    ],
)
def test_what_spark_did_wrong_is_found(scene: SparkScene, wrong: dict[str, Any], failed: list[str]) -> None:
    scene.batches = [{"id": 0, "weeks": 2}]
    scene.proof = {"changes": 3, "weeks": WEEKS, **wrong}
    spark_chapters.prove(scene)

    assert len(scene.stage.failed_checks) == len(failed)
    assert all(map(str.startswith, scene.stage.failed_checks, failed))


def test_what_the_demo_shows_of_a_micro_batch() -> None:
    event = {
        "batchId": 3,
        "numInputRows": 5,
        "observedMetrics": {"read": {"until": "1967-11-01T00:00:00.000Z"}},
        "sink": {"numOutputRows": 4},
        "durationMs": {"triggerExecution": 250},
    }

    assert spark_job.batch_of(event) == {"id": 3, "records": 5, "until": "1967-11-01", "weeks": 4, "took_ms": 250}


def test_a_missing_package_is_told_in_one_line(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = command.run("demo", "--spark")

    assert done.status == 2
    assert done.err == "odradek: --spark needs pyspark and pyarrow (pip install 'pyspark>=4.2' 'pyarrow>=17' numpy)\n"


def test_missing_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(ConfigError, match="needs Java 17"):
        check_installed()

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").touch()
    check_installed()


def test_chapters_are_told_in_a_folder_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    scenes: list[SparkScene] = []
    monkeypatch.setattr(spark_story, "check_installed", lambda: None)
    monkeypatch.setattr(spark_story, "CHAPTERS", (scenes.append,))
    spark_story.run_spark_story(Stage(io.StringIO()), keeps_files=False, now_s=7)

    (scene,) = scenes

    assert scene.now_s == 7
    assert not scene.folder.exists()


@pytest.mark.spark
def test_the_whole_of_it() -> None:
    pytest.importorskip("pyspark", reason="pip install '.[spark]'")
    if shutil.which("java") is None:
        skip_or_fail("the demo of Spark needs Java 17")
    command = [sys.executable, "-m", "odradek", "demo", "--spark"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    assert told.returncode == 0, told.stdout + told.stderr
    assert re.search(r"All \d+ checks hold", told.stdout)
    assert re.search(r"died where it stood: [6-8] micro-batches planned, [5-7] done", told.stdout)
    assert "\x1b" not in told.stdout
