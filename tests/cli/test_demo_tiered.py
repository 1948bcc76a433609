"""`odradek demo --tiered`: the whole of it once, and its parts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odradek.cli.demo import tiered_story
from odradek.cli.demo.stage import Stage


@pytest.fixture(scope="module")
def told() -> subprocess.CompletedProcess[str]:
    """Run the demo as a script would: its output is no terminal."""
    command = [sys.executable, "-m", "odradek", "demo", "--tiered"]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def test_every_check_holds_and_the_status_says_so(told: subprocess.CompletedProcess[str]) -> None:
    assert told.returncode == 0, told.stdout + told.stderr
    assert "All 8 checks hold" in told.stdout
    assert told.stderr == ""
    assert max(map(len, told.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    "promised",
    [
        "file:///",
        "remote.storage.enable=true",
        "only the newest is on this disk",
        "odradek tiered verify",
        "earliest-local",
        "with the SHA-256 of what was sent",
        "found by the time index in the store",
        "cleanup.policy=compact",
        "the newest of each of",
        "finds no segment there any more",
    ],
)
def test_what_a_reader_should_see_is_there(told: subprocess.CompletedProcess[str], promised: str) -> None:
    assert promised in " ".join(told.stdout.split())


def test_tables_show_where_each_segment_lies(told: subprocess.CompletedProcess[str]) -> None:
    before, after, full, compacted = (
        [re.split(r"  +", line.strip()) for line in table.splitlines()]
        for table in re.findall(r"   from offset .*\n((?: +[\d,]+  .*\n)+)", told.stdout)
    )

    assert {row[-1] for row in before} == {"disk"}
    assert [row[-1] == "disk" for row in after] == [False] * len(before) + [True]
    assert [row[:3] for row in after[:-1]] == [row[:3] for row in before]
    assert [row[0] for row in full] == [row[0] for row in compacted]
    assert all(row[1].endswith(" MB") for row in full[:-2])
    assert all(row[1].endswith(" kB") for row in compacted[:-1])


def test_nothing_stays_behind(told: subprocess.CompletedProcess[str]) -> None:
    found = re.search(r"(\S+/odradek-demo-\w+)/data", told.stdout)

    assert found is not None
    assert not Path(found[1]).exists()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--store", "s3://bucket"), "odradek demo --tiered --store URL"),
        (("--tiered", "--store", "memory://here"), "leave --store out for a folder"),
    ],
)
def test_a_store_that_makes_no_sense_is_refused(command: Any, words: tuple[str, ...], hint: str) -> None:
    done = command.run("demo", *words)

    assert done.status == 2
    assert hint in done.err


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", r"file:///.*/odradek-demo-\w+/store"), ("s3://bucket/prefix/", r"s3://bucket/prefix/odradek-demo-\w+")],
)
def test_what_is_put_into_a_store_lies_below_a_name_of_its_own(
    monkeypatch: pytest.MonkeyPatch, given: str, expected: str
) -> None:
    urls: list[str] = []
    monkeypatch.setattr(tiered_story, "CHAPTERS", (lambda scene: urls.append(scene.store_url),))

    tiered_story.run_tiered_story(Stage(), keeps_files=False, now_s=0, store_url=given)

    (url,) = urls
    assert re.fullmatch(expected, url)
