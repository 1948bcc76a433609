"""Results as a comparison would give them, for tests of what is made of them."""

from __future__ import annotations

from odradek.kernel.config.keys import Scope
from odradek.lab.compare.figures import ALL
from odradek.lab.compare.report import Report, row_of
from odradek.lab.compare.variations import Choice, Combination
from odradek.lab.compare.workload import Workload

STORAGE = "odradek.storage"
POLICY = "cleanup.policy"


def combination(*values: str, keys: tuple[str, ...] = (STORAGE, POLICY)) -> Combination:
    choices = tuple(Choice(key, Scope.TOPIC, value) for key, value in zip(keys, values, strict=False))
    return Combination(choices, {choice.key: choice.value for choice in choices}, {"log.cleaner.backoff.ms": "200"})


def figures(factor: float = 1.0, **known: float | None) -> dict[str, float | None]:
    """Return the figures of a round: the same number everywhere, nothing lost, but for what is given."""
    nothing_lost = {"lost": 0.0, "wrong": 0.0, "lost_by_kill": 0.0}
    return {figure.name: 100.0 * factor for figure in ALL} | nothing_lost | known


def report(
    *rows: tuple[Combination, list[dict[str, float | None]], str], rounds: int = 3, text: str = "what it is like"
) -> Report:
    return Report(
        workload=Workload("mine", text=text, keys=5),
        seed=7,
        rounds=rounds,
        fixed=(),
        rows=tuple(row_of(one, some, ["a note"] if failed else [], failed) for one, some, failed in rows),
        machine={"processor": "one & only", "system": "some"},
        command="odradek compare --vary odradek.storage=segment,memory",
        made_at="2026-11-21T21:00:00+00:00",
    )


def usual_report() -> Report:
    """Return a report of three combinations: a baseline, one that is twice as much of everything, one that failed."""
    return report(
        (combination("segment", "delete"), [figures(0.9), figures(1.0), figures(1.1)], ""),
        (combination("memory", "delete"), [figures(2.0, store=None), figures(2.2), figures(1.9, lost_by_kill=5)], ""),
        (combination("zzz", "<b>"), [], "the broker did not start"),
    )
