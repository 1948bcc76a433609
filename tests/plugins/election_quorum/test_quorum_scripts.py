"""Known stories of quorums, told as scripts over pure steppers: votes, epochs, logs, voters. See `scripted.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.plugins.election_quorum.sabotage import FOUND_BY_SCRIPTS, SABOTAGES
from tests.plugins.election_quorum.scripted import Script, told_by

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_story_ends_as_it_is_told(script: Path) -> None:
    lines = script.read_text().splitlines()

    assert list(told_by(lines, Script())) == lines


@pytest.mark.parametrize(("mistake", "script"), FOUND_BY_SCRIPTS.items())
def test_a_rare_mistake_ends_a_story_otherwise(mistake: str, script: str) -> None:
    lines = (SCRIPTS[0].parent / f"{script}.txt").read_text().splitlines()
    with SABOTAGES[mistake]():
        told = list(told_by(lines, Script()))

    assert told != lines


def rewrite(paths: Sequence[Path], say: Callable[[str], object]) -> None:
    """Write down what scripts say now; to be read before it is believed."""
    for path in paths:
        path.write_text("\n".join(told_by(path.read_text().splitlines(), Script())) + "\n")
        say(path.name)
