"""A long campaign in real processes: it goes on where it stopped, and no seed stops it."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.cli import main
from odradek.lab.simulator import campaign_workers
from odradek.lab.simulator.campaign_results import HEADER, Progress, Result
from odradek.lab.simulator.campaign_workers import SEED_S_MAX, CampaignFile, code_hash, run_campaign
from odradek.lab.simulator.runs import Outcome
from odradek.lab.simulator.variations import Variation

MINE = Variation("mine", (("a.key", "a value"),))
START_S_MAX = 20.0
"""A process starts within this, whatever else the machine does: the time that a seed may take begins before."""


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no coverage measured in the processes, each of which would take seconds to start."""
    for name in [name for name in os.environ if name.startswith("COVERAGE_PROCESS")]:
        monkeypatch.delenv(name)


def run_oddly(scenario: str, settings: Mapping[str, str], seed: int) -> Outcome:
    """Stand in for a scenario: of some seeds the process ends, or goes on for ever."""
    if seed == 2:
        os._exit(3)
    if seed == 3:
        os.abort()
    if seed == 4:
        time.sleep(1000)
    return Outcome(seed, "", (), f"{scenario} {dict(settings)}", 1.0, 0.1, {"lives": 1, str(os.getpid()): 1})


def run_all(
    seeds: range, *, processes_count: int = 1, seconds_max: float = math.inf, seed_s_max: float = SEED_S_MAX
) -> list[Result]:
    found: list[Result] = []
    run_campaign(
        Progress([MINE], seeds, "now"),
        "now",
        processes_count=processes_count,
        seconds_max=seconds_max,
        on_result=found.append,
        seed_s_max=seed_s_max,
        run=run_oddly,
    )
    return found


def test_a_seed_that_ends_its_process_or_never_ends_is_a_failure_like_another() -> None:
    found = run_all(range(1, 6), seed_s_max=START_S_MAX)

    assert [(each.seed, each.failure) for each in found] == [
        (1, ""),
        (2, "the process that ran it ended: exit status 3"),
        (3, "the process that ran it ended: by SIGABRT"),
        (4, "it did not end within 20 s"),
        (5, ""),
    ]
    assert found[0].trace_hash == "mine {'a.key': 'a value'}"
    assert {(each.variation, each.code) for each in found} == {(MINE, "now")}


def test_processes_share_the_work_and_are_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_workers, "SEEDS_PER_PROCESS", 2)
    found = run_all(range(5, 13), processes_count=2)

    assert sorted(each.seed for each in found) == list(range(5, 13))
    assert len({name for each in found for name in each.coverage if name.isdigit()}) >= 4


def test_once_the_time_is_over_no_seed_is_begun() -> None:
    assert run_all(range(5, 25), seconds_max=0) == []


# -- the file --------------------------------------------------------------------------------------------------------


def a_result(seed: int) -> Result:
    return Result(MINE, seed, "now", "", "", (), 1.0, 0.5, {})


def test_what_a_crash_left_of_a_line_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "sim.jsonl"
    for torn in ("", HEADER[:9], HEADER + a_result(1).as_line + a_result(2).as_line[:40]):
        path.write_text(torn)
        with CampaignFile(path) as file:
            known = file.results
            file.add(a_result(3))
        with CampaignFile(path) as file:
            assert file.results == [*known, a_result(3)]


def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("what I want to remember")
    for _ in range(2):
        with pytest.raises(ValueError, match="no file of a campaign"):
            CampaignFile(path)

    assert path.read_text() == "what I want to remember"


def test_two_campaigns_do_not_add_to_one_file(tmp_path: Path) -> None:
    with CampaignFile(tmp_path / "sim.jsonl"), pytest.raises(BlockingIOError):
        CampaignFile(tmp_path / "sim.jsonl")
    with CampaignFile(tmp_path / "sim.jsonl"):
        pass


def test_the_hash_of_the_code_is_the_same_as_long_as_nobody_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "core.py").write_text("A = 1")
    monkeypatch.setattr("odradek.__file__", str(tmp_path / "__init__.py"))
    first = code_hash()
    (tmp_path / "notes.txt").write_text("no code")

    assert code_hash() == first
    (tmp_path / "room" / "core.py").write_text("A = 2")
    assert code_hash() != first


# -- the command -----------------------------------------------------------------------------------------------------


def campaign(path: Path, *words: str) -> int:
    return main(["sim", "--campaign", str(path), "--scenario", "append", *words])


def test_the_command_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sim.jsonl"

    assert campaign(path, "--seeds", "1") == 0
    assert "1 of 1 seeds, 0 failed" in capsys.readouterr().out
    first = path.read_text()
    assert campaign(path, "--seeds", "2", "--json", "-") == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["seeds"], figures["wanted"], figures["failed"], figures["codes"]) == (2, 2, [], 1)
    assert figures["variations"][0]["coverage"]["crashes"] > 0
    assert path.read_text().startswith(first)
    assert len(path.read_text().splitlines()) == 3


def test_the_command_tells_how_to_replay_what_failed_until_the_code_is_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sim.jsonl"
    monkeypatch.setattr(campaign_workers, "code_hash", lambda: "now")
    failed = Result(Variation("append"), 1, "now", "aa", "kept: it is gone", ("a line",), 1.0, 0.5, {"crashes": 1})
    path.write_text(HEADER + failed.as_line)

    assert campaign(path, "--seeds", "1") == 1
    told = capsys.readouterr()
    assert "append, seed 1: kept: it is gone\n  odradek sim --scenario append --replay 1 -v\n" in told.err
    assert "1 of 1 seeds, 1 failed" in told.out
    monkeypatch.setattr(campaign_workers, "code_hash", lambda: "later")
    assert campaign(path, "--seeds", "1") == 0
    assert capsys.readouterr().err == ""


def test_the_command_says_what_nobody_exercised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sim.jsonl"
    done = (Result(Variation("append"), seed, "now", "aa", "", (), 1.0, 0.5, {}) for seed in range(1, 21))
    path.write_text(HEADER + "".join(result.as_line for result in done))

    assert campaign(path, "--seeds", "20") == 1
    assert "append: no seed exercised 'process crashes': nothing is proved of it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--jobs", "2"], "--jobs: is of a campaign"),
        (["--minutes", "2"], "--minutes: is of a campaign"),
        (["--campaign", "sim.jsonl", "--replay", "1"], "--replay: runs one seed"),
        (["--campaign", "notes.txt"], "line 1: this is no file of a campaign"),
    ],
)
def test_the_command_refuses(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("what I want to remember\n")

    assert main(["sim", *words]) == 2
    assert told in capsys.readouterr().err


def test_the_command_refuses_a_file_that_another_campaign_adds_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with CampaignFile(tmp_path / "sim.jsonl"):
        assert campaign(tmp_path / "sim.jsonl") == 2

    assert "another campaign adds to it" in capsys.readouterr().err
