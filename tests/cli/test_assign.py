"""`odradek assign simulate`: the example, scripts, what is counted, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odradek.cli.assign import ranges

ROOT = Path(__file__).parents[2]
CLASSIC = "topic orders 10; join a b c; leave c; join d"


def simulated(command: Any, steps: str, *more: str) -> Any:
    done = command.run("assign", "simulate", "-e", steps, "--json", *more)
    assert (done.status, done.err) == (0, "")
    return done.json


def test_without_a_script_an_example_is_played_that_shows_every_assignor(command: Any) -> None:
    done = command.run("assign", "simulate")

    assert done.status == 0
    for name in ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "moved", "spread"):
        assert name in done.out
    assert "5-6 +7-9" in done.out
    assert "all 3 steps" in done.out


def test_the_classic_example_tells_who_has_what_after_each_step(command: Any) -> None:
    first, second, third = simulated(command, CLASSIC)["steps"]

    assert first["step"] == "topic orders 10; join a b c"
    assert first["assignors"]["range"]["assignment"] == {
        "a": {"orders": [0, 1, 2, 3]},
        "b": {"orders": [4, 5, 6]},
        "c": {"orders": [7, 8, 9]},
    }
    assert first["assignors"]["roundrobin"]["assignment"]["a"] == {"orders": [0, 3, 6, 9]}
    assert {name: one["moved"] for name, one in second["assignors"].items()} == {
        "range": 1,
        "roundrobin": 3,
        "sticky": 0,
        "cooperative-sticky": 0,
        "uniform": 0,
    }
    assert second["assignors"]["range"]["moves"] == [{"topic": "orders", "partition": 4, "from": "b", "to": "a"}]
    assert third["assignors"]["sticky"]["loads"] == {"a": 4, "b": 3, "d": 3}
    assert (third["assignors"]["sticky"]["spread"], third["assignors"]["cooperative-sticky"]["rebalances"]) == (1, 2)


def test_totals_add_up_the_steps(command: Any) -> None:
    told = simulated(command, CLASSIC)

    for name, total in told["totals"].items():
        assert total["moved"] == sum(step["assignors"][name]["moved"] for step in told["steps"])
        assert total["spread_max"] == max(step["assignors"][name]["spread"] for step in told["steps"])


def test_a_script_comes_from_a_file_or_from_standard_input(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "churn.txt"
    script.write_text("# two members\ntopic orders 4\njoin a b\n")
    from_file = command.run("assign", "simulate", str(script), "--json")
    with script.open() as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        from_input = command.run("assign", "simulate", "-", "-e", "leave b", "--json")

    assert [step["step"] for step in from_file.json["steps"]] == ["topic orders 4; join a b"]
    assert [step["step"] for step in from_input.json["steps"]] == ["topic orders 4; join a b", "leave b"]


def test_subscriptions_and_topics_change(command: Any) -> None:
    steps = "topic a 2; topic b 2; join x reads a; join y; change x reads b; topic b 3; delete a; leave x y"
    told = simulated(command, steps, "--assignor", "uniform")["steps"]
    loads = [step["assignors"]["uniform"]["loads"] for step in told]

    assert loads == [{"x": 2}, {"x": 2, "y": 2}, {"x": 2, "y": 2}, {"x": 3, "y": 2}, {"x": 2, "y": 1}, {}]
    assert told[3]["assignors"]["uniform"]["moved"] == 0
    assert [move["topic"] for move in told[4]["assignors"]["uniform"]["moves"]] == ["b"]  # a deleted one did not move


def test_members_are_given_what_is_near(command: Any) -> None:
    steps = "topic orders 4 racks r1 r2; join a in r2; join b in r1"
    told = simulated(command, steps, "--assignor", "range")["steps"][-1]

    assert told["assignors"]["range"]["assignment"] == {"a": {"orders": [1, 3]}, "b": {"orders": [0, 2]}}


def test_many_partitions_are_counted_and_not_named(command: Any) -> None:
    done = command.run("assign", "simulate", "-e", "topic big 100; join a b; leave a", "--assignor", "sticky")

    assert "100  +50" in done.out


def test_partitions_of_several_topics_stand_below_each_other(command: Any) -> None:
    done = command.run("assign", "simulate", "-e", "topic a 2; topic b 1; join x", "--assignor", "range")

    assert [line.split() for line in done.out.splitlines() if "0" in line][:2] == [["x", "a", "0-1"], ["b", "0"]]


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ("jion a", "-e, line 1: there is no step 'jion' (steps are topic, delete, join, leave, change)"),
        ("topic orders", "'topic orders': expected a topic and how many partitions it has"),
        ("topic orders 4 racks", "something is missing after 'racks'"),
        ("delete orders", "there is no topic 'orders' (there: none)"),
        ("delete", "expected a topic"),
        ("join", "expected a member"),
        ("join a a", "a is a member already"),
        ("join a reads orders", "there is no topic 'orders'"),
        ("leave a", "there is no member 'a'"),
        ("topic t 1; join a; change a", "expected a topic"),
    ],
)
def test_a_script_that_makes_no_sense_is_refused_with_its_line(command: Any, steps: str, told: str) -> None:
    done = command.run("assign", "simulate", "-e", steps)

    assert (done.status, done.out) == (2, "")
    assert told in done.err


def test_an_assignor_that_nobody_offers_is_refused_with_those_there_are(command: Any) -> None:
    done = command.run("assign", "simulate", "--assignor", "fair")

    assert done.status == 1
    assert "offered: cooperative-sticky, range, roundrobin, sticky, uniform" in done.err


def test_the_broadcast_example_is_a_plugin_by_its_module_path(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text('[plugins]\nenable = ["assignors", "examples.broadcast_assignor"]\n')
    arguments = ["assign", "simulate", "--config", str(config), "--assignor", "broadcast", "-e", CLASSIC]
    done = subprocess.run(
        [sys.executable, "-m", "odradek", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines() if line.startswith(" d")] == [["d", "0-9"]]


def test_runs_of_partitions_are_shortened() -> None:
    assert ranges([0, 1, 2, 4, 6, 7]) == "0-2 4 6-7"
    assert ranges([]) == ""
