"""The scenario `append`, whole: real brokers and clients, in this process and in others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from odradek.cli import main
from odradek.kernel.partitions.producer_table import ProducerStateTable
from odradek.kernel.records.batch import BatchHeader
from odradek.lab.simulator import append as scenario
from odradek.lab.simulator.append import APPEND
from odradek.lab.simulator.campaign import SCENARIOS
from odradek.lab.simulator.disk import File
from odradek.lab.simulator.faults import Crash
from odradek.lab.simulator.files import Files
from odradek.lab.simulator.record_load import TOPIC
from odradek.lab.simulator.runs import Outcome, Run, Scenario, run_seed
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import World
from odradek.plugins.storage_segment.segment import Segment
from odradek.testing.faults import PowerLoss


def run_in_another_process(name: str, seed: int, hash_seed: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "sim", "--scenario", name, "--replay", str(seed), "--json", "-"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    figures: dict[str, object] = json.loads(done.stdout)
    return figures


SHORT_SEEDS = dict.fromkeys(SCENARIOS, 2) | {"groups": 10, "retry": 1, "transactions": 1}
"""Runs that are short; in that of `groups` sets of two partitions once had another order, and requests followed it."""


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_seed_is_the_same_run_in_every_process_whatever_the_hash_seed(name: str) -> None:
    runs = [run_in_another_process(name, SHORT_SEEDS[name], hash_seed) for hash_seed in ("1", "2")]

    assert len({run["trace_hash"] for run in runs}) == 1
    assert runs[0]["coverage"] == runs[1]["coverage"]


def seeds_until_found(seeds_max: int) -> list[Outcome]:
    """Run seeds until one fails."""
    outcomes: list[Outcome] = []
    for seed in range(1, seeds_max + 1):
        outcomes.append(run_seed(APPEND, seed, {}))
        if outcomes[-1].failure:
            break
    return outcomes


def leave_out_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync files in name only."""
    monkeypatch.setattr(Files, "fsync", lambda _self, _fd: None)


def acknowledge_before_the_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what was written to a log last not be there yet when the process dies."""
    write: Callable[..., int] = Files.pwritev
    end: Callable[[Files], None] = Files.end
    last: dict[Files, tuple[File, int]] = {}

    def write_later(self: Files, fd: int, buffers: list[bytes], position: int) -> int:
        file, path = self._open[fd]
        written = write(self, fd, buffers, position)
        if path.suffix == ".log" and path.parent.name.startswith(TOPIC) and not self.is_dead:
            last[self] = file, position
        return written

    def end_before(self: Files) -> None:
        if not self.is_dead and self in last:
            file, position = last.pop(self)
            file.resize(min(position, file.size_bytes))
        end(self)

    monkeypatch.setattr(Files, "pwritev", write_later)
    monkeypatch.setattr(Files, "end", end_before)


def check_no_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what an idempotent producer sends once more."""
    monkeypatch.setattr(ProducerStateTable, "check", lambda *_: None)


def keep_torn_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recover a log up to where batches end that look like some, whatever their checksums say."""

    def is_in_order(_self: Segment, header: BatchHeader, _batch: memoryview, next_offset: int) -> bool:
        return next_offset <= header.base_offset <= header.last_offset

    monkeypatch.setattr(Segment, "_is_sound", is_in_order)
    # Often met only where much was not flushed, and the power tears it.
    draw_plan, draw_crash = scenario.Plan.drawn, Crash.drawn
    monkeypatch.setattr(scenario.Plan, "drawn", lambda source: attrs.evolve(draw_plan(source), flush_messages=0))
    monkeypatch.setattr(Crash, "drawn", lambda *args: attrs.evolve(draw_crash(*args), style=PowerLoss.TORN))


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("sabotage", "seeds_max"),
    [
        (leave_out_syncs, 20),
        (acknowledge_before_the_write, 20),
        (check_no_sequences, 20),
        (keep_torn_batches, 20),
    ],
)
def test_sabotage_is_found_within_so_many_seeds(
    sabotage: Callable[[pytest.MonkeyPatch], None], seeds_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)
    outcomes = seeds_until_found(seeds_max)

    assert outcomes[-1].failure


def test_a_run_in_which_nothing_happened_fails() -> None:
    async def nothing(run: Run) -> None:
        run.require("crashes")

    outcome = run_seed(Scenario("nothing", "", nothing), 1, {})

    assert outcome.failure == "NothingExercisedError: the run exercised no crashes"


def test_an_unexpected_line_in_a_log_fails_the_run() -> None:
    async def complain(_run: Run) -> None:
        import logging

        try:
            raise ValueError("odd")
        except ValueError:
            logging.getLogger("odradek.kernel").exception("it failed unexpectedly")

    outcome = run_seed(Scenario("complain", "", complain), 1, {})

    assert outcome.failure == "something unexpected was logged"
    assert any("ValueError: odd" in line for line in outcome.details)


def test_plans_differ() -> None:
    plans = {scenario.Plan.drawn(World(Seeds(seed)).seeds.stream("workload")) for seed in range(40)}

    assert {plan.acks for plan in plans} == {"0", "1", "all"}
    assert {plan.flush_messages for plan in plans} == {0, 1}
    assert {plan.crashes for plan in plans} == {1, 2, 3, 4}


def test_the_command_tells_how_to_replay_what_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def fail(run: Run) -> None:
        if run.world.seeds.seed == 3:
            raise ValueError("the third")

    monkeypatch.setattr("odradek.lab.simulator.campaign.SCENARIOS", {"append": Scenario("append", "about", fail)})
    file = tmp_path / "sim.json"
    status = main(["sim", "--seeds", "4", "--from", "2", "--set", "num.partitions=2", "--json", str(file)])
    told = capsys.readouterr()

    assert status == 1
    assert "seed 3: ValueError: the third" in told.err
    assert "odradek sim --scenario append --set num.partitions=2 --replay 3 -v" in told.err
    assert "4 seeds, 1 failed" in told.out
    figures = json.loads(file.read_text())
    assert (figures["seeds"], figures["failed"]) == (4, [3])


def test_the_command_replays_a_seed_event_by_event(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def note(run: Run) -> None:
        run.world.note("greeting", "hello")

    monkeypatch.setattr("odradek.lab.simulator.campaign.SCENARIOS", {"append": Scenario("append", "about", note)})

    assert main(["sim", "--replay", "9", "-v"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["0.000000s", "greeting", "hello"]
    assert lines[1].startswith("seed 9 kept every promise: 0.000 s simulated, trace ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--scenario", "dance"], "there is no scenario 'dance'"),
        (["--set", "num.partitions"], "sets nothing"),
    ],
)
def test_the_command_refuses(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_the_command_lists_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--scenarios"]) == 0
    assert capsys.readouterr().out.startswith("append ")
