"""The command that runs frameworks knows its folders, and the table in the documentation tells of the same versions."""

from __future__ import annotations

import datetime

import pytest

from tools.frameworks import DOCUMENT, PROGRAMS, TABLE, frameworks, judge, main, pinned_version, table

NAMES = sorted(path.name for path in PROGRAMS.iterdir())


def recorded() -> list[list[str]]:
    """Return the rows of the table, each its cells."""
    found = TABLE.search(DOCUMENT.read_text(encoding="utf-8"))
    assert found is not None
    rows = [line.strip("| ").split(" | ") for line in found[0].splitlines() if line.startswith("| [")]
    assert rows
    return rows


def test_every_folder_is_a_framework() -> None:
    assert [each.name for each in frameworks()] == NAMES
    assert len(NAMES) >= 10


def test_the_command_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == NAMES


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["faststraem", "--list"])

    assert "no such framework: faststraem; --list shows all" in capsys.readouterr().err


def test_the_table_tells_of_what_is_pinned() -> None:
    told = [(row[0].partition("]")[0].strip("["), row[1], row[2]) for row in recorded()]

    assert told == [(each.title, each.version, each.shows) for each in frameworks()]


def test_the_table_tells_of_runs_against_both() -> None:
    assert {cell for row in recorded() for cell in row[3:]} <= {"ok", "failed"}
    assert all(len(row) == 5 for row in recorded())


def test_a_table_is_what_is_read_back() -> None:
    one = frameworks()[0]

    text = table([one], {one.name: {"Odradek": "ok", "Kafka": "failed"}}, datetime.date(2026, 11, 24))

    assert text.startswith("On 2026-11-24, ")
    assert text.endswith(f"| {one.version} | {one.shows} | ok | failed |\n")


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("faststream==0.7.8\n", "faststream"),
        ("quix==1.0\nfaststream == 0.7.8\n", "faststream"),
        ("<artifactId>spring-kafka</artifactId><version>0.7.8</version>", "spring-kafka"),
        ("require github.com/a/kafka/v3 v0.7.8", "github.com/a/kafka/v3"),
        ('"@nestjs/microservices": "0.7.8",', "@nestjs/microservices"),
        ('rdkafka = { version = "=0.7.8", features = ["curl"] }', "rdkafka"),
    ],
)
def test_the_version_is_read_from_the_file_of_pins(text: str, package: str) -> None:
    assert pinned_version(text, package) == "0.7.8"


@pytest.mark.parametrize("text", ["kafka-go==1.0", "kafka.go==1.0", "my-kafka==1.0", "kafka", "kafka\n1.0"])
def test_a_package_that_is_not_pinned_has_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="kafka is not pinned"):
        pinned_version(text, "kafka")


@pytest.mark.parametrize(
    ("status", "said", "verdict"),
    [
        (0, "ok\n", "ok"),
        (0, "counted 7\nok\n", "ok"),
        (0, "", "failed: it did not say ok"),
        (0, "not ok\n", "failed: it did not say ok"),
        (1, "ok\n", "failed: exit status 1"),
        (None, "ok\n", "failed: not done after 300 s"),
    ],
)
def test_a_program_is_judged_by_its_status_and_its_word(status: int | None, said: str, verdict: str) -> None:
    assert judge(status, said) == verdict
