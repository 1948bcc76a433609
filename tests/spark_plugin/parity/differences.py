"""Compares what came of an input here with what the connector does, and knows the differences that are meant."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .observe import Outcome

HERE: Final = Path(__file__).parent
VERSIONS: Final = ("4.0.0", "4.2.0")
"""Of the connector: the newest that Maven Central has whole, and the newest that it has."""


def held_to(version: str) -> str:
    """Return the version of the connector that a pyspark's sources are held to: the newest that is not younger."""
    numbers = [int(part) for part in version.split(".")[:3]]
    return max(each for each in VERSIONS if [int(part) for part in each.split(".")] <= numbers)


def recorded_file(version: str) -> Path:
    """Return what keeps the answers of a version of the connector."""
    return HERE / "recorded" / f"{version}.json"


RECORDED: Final[dict[str, dict[str, dict[str, Outcome]]]] = {
    version: json.loads(recorded_file(version).read_text(encoding="utf-8")) for version in VERSIONS
}
"""Version, kind and name of an input to what the connector does."""
MEANT: Final[dict[str, dict[str, Any]]] = tomllib.loads((HERE / "differences.toml").read_text(encoding="utf-8"))
COMPARED: Final = ("rows", "tasks", "digest", "batches", "offsets", "written", "records")


def essence(outcome: Outcome) -> dict[str, Any]:
    """Return what is compared of an outcome: what was read or written, or that it was refused.

    At which stage and in which words something is refused is not compared: we refuse most of it earlier, and say more.
    """
    if "refused" in outcome:
        return {"refused": True} | {key: outcome[key] for key in ("records",) if outcome.get(key)}
    compared: dict[str, Any] = {key: outcome[key] for key in COMPARED if key in outcome}
    if not compared.get("rows", 1):
        compared.pop("tasks", None)  # Spark makes one task of none for a Python source
    return compared


def expected(version: str, kind: str, name: str) -> dict[str, Any]:
    """Return the essence that we are to show: the connector's, or what the list of differences says instead."""
    theirs = essence(RECORDED[version][kind][name])
    meant = MEANT.get(kind, {}).get(name)
    return theirs if meant is None or not applies(meant, version) else merged(theirs, meant["here"])


def applies(meant: dict[str, Any], version: str) -> bool:
    """Say whether a difference is one from this version of the connector."""
    return bool(meant.get("connector", version) == version)


def merged(theirs: dict[str, Any], here: dict[str, Any]) -> dict[str, Any]:
    """Return what differs put over the connector's essence; a refusal replaces it, and replaces nothing else."""
    if here.get("refused"):
        return here
    return {key: value for key, value in theirs.items() if key != "refused"} | here
