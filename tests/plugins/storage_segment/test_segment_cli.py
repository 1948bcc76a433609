"""`odradek log dump`."""

import json
from pathlib import Path

import pytest

from odradek.cli import main

GOLDEN = Path(__file__).parent / "golden" / "kafka-4.3.1"


def run(*arguments: str) -> int:
    return main(["log", "dump", *arguments])


def test_a_log_directory_is_printed_file_by_file(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(str(GOLDEN))
    lines = capsys.readouterr().out.splitlines()

    assert (status, sum(line.startswith("  batch: ") for line in lines)) == (0, 32)
    assert str(GOLDEN / "golden-0" / "00000000000000000045.log") in lines
    assert "  epoch: leader_epoch=2 start_offset=45" in lines


def test_records_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    status = run("--records", "--json", str(GOLDEN / "golden-1" / "00000000000000000000.log"))
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert (status, [row.get("value") for row in found if row["kind"] == "record"]) == (0, ["alone", "alone"])


def test_damage_and_missing_files_are_told_by_the_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "00000000000000000000.log"
    damaged.write_bytes(b"torn")
    found = [run(str(damaged)), run(str(tmp_path / "nowhere"))]

    assert (found, capsys.readouterr().err) == ([1, 2], f"odradek: {tmp_path / 'nowhere'} is not there\n")
