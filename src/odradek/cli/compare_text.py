"""Shell: how a comparison looks in a terminal: a bar while it runs, and tables that fit a hundred columns.

Without a terminal the bar is a line for each run, and the tables are plain text.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import attrs
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from odradek.lab.compare.figures import ALL, BY_NAME, ROUNDS_MIN, Group
from odradek.lab.compare.findings import findings, is_better
from odradek.lab.compare.one_run import PHASES
from odradek.lab.compare.quantities import column_scale, quantity_text, spread_text

from .output import plural
from .rich_console import CommandConsole

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from odradek.lab.compare.comparison import Step
    from odradek.lab.compare.figures import Figure
    from odradek.lab.compare.report import Report, Row

WIDTH: Final = 100
_GAP: Final = 3
_EDGE: Final = 2

_ABOUT: Final = ("produce_records", "ack_p99", "disk", "unavailable_s", "p99_ms", "lost")
"""The figures that the line of a finished run tells."""


class Watcher:
    """Shows where a comparison is, on standard error. Used by one task, for the time of a `with`."""

    def __init__(self) -> None:
        self._console = CommandConsole(stderr=True, highlight=False)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[phase]:<12}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("comparing", total=None, phase="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def foretell(self, text: str) -> None:
        """Say how long it will take."""
        self._console.print(text, style="dim", soft_wrap=True)

    def note(self, step: Step) -> None:
        """Take note of a step."""
        label = step.combination.label
        if step.phase:
            done = step.number + (PHASES.index(step.phase) + step.share) / len(PHASES) if step.phase in PHASES else 0
            self._progress.update(
                self._task,
                description=f"run {step.number + 1} of {step.count or '?'}  {label}",
                completed=done,
                total=step.count or None,
                phase=step.phase,
            )
        elif step.failed:
            self._console.print(f"round {step.round + 1}  {label}: {step.failed}", style="red", soft_wrap=True)
        elif step.result is not None:
            figures = step.result.figures
            told = ", ".join(
                f"{BY_NAME[name].title} {quantity_text(value, BY_NAME[name].unit)}"
                for name in _ABOUT
                if (value := figures.get(name)) is not None
            )
            self._console.print(f"round {step.round + 1}  {label}: {told}", style="dim", soft_wrap=True)


def print_report(report: Report) -> None:
    """Print what came of a comparison to standard output."""
    console = CommandConsole(highlight=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    workload = report.workload
    console.print()
    title = f"{workload.name}: {workload.records_all:,} records, {plural(len(report.rows), 'combination')}"
    console.print(f"[bold]{title}[/], {report.rounds_text}, seed {report.seed}")
    if workload.text:
        console.print(Text(workload.text, style="dim"))
    for group in Group:
        for number, table in enumerate(_tables(report, group, console.width)):
            console.print()
            if not number:
                console.print(f"[bold]{group.value}[/]")
            console.print(table)
    console.print()
    _print_remarks(console, report)


def _tables(report: Report, group: Group, width: int) -> list[Table]:
    """Return the figures of a group, as many tables as they need to fit."""
    rows = report.measured
    if not rows:
        return []
    columns = [
        _Column.of(figure, report)
        for figure in ALL
        if figure.group is group and any(row.figures[figure.name] is not None for row in rows)
    ]
    label_width = min(max(len(row.combination.label) for row in rows), width // 3)
    parts: list[list[_Column]] = [[]]
    left = width - label_width - _EDGE
    for column in columns:
        if parts[-1] and column.width + _GAP > left:
            parts.append([])
            left = width - label_width - _EDGE
        parts[-1].append(column)
        left -= column.width + _GAP
    return [_table(part, rows, label_width) for part in parts if part]


@attrs.frozen
class _Column:
    """A figure in a table: its heading with the unit, and the cells, one for each row."""

    heading: str
    cells: list[Text]

    @classmethod
    def of(cls, figure: Figure, report: Report) -> _Column:
        rows = report.measured
        divisor, unit = column_scale((row.figures[figure.name] for row in rows), figure.unit)
        return cls(
            f"{figure.title} {unit}".strip(), [_cell(figure, row, report.baseline_of(row), divisor) for row in rows]
        )

    @property
    def width(self) -> int:
        return max(len(self.heading), *(len(cell.plain) for cell in self.cells))


def _table(columns: list[_Column], rows: list[Row], label_width: int) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1),
        header_style="dim",
    )
    table.add_column("", style="cyan", overflow="fold", max_width=label_width)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for number, row in enumerate(rows):
        table.add_row(row.combination.label, *(column.cells[number] for column in columns))
    return table


def _cell(figure: Figure, row: Row, baseline: Row, divisor: float) -> Text:
    """Return a figure as text: better or worse than the baseline's by colour, where it is apart from that."""
    spread, other = row.figures[figure.name], baseline.figures[figure.name]
    text = Text(spread_text(spread, figure.unit, divisor))
    if figure.group is Group.KEPT:
        is_bad = figure.is_better_high is False and spread is not None and spread.high > 0
        text.stylize("bold red" if is_bad else "")
    elif spread is not None and other is not None and row is not baseline:
        verdict = is_better(figure, spread, other)
        text.stylize({True: "green", False: "yellow", None: "dim"}[verdict])
    return text


def _print_remarks(console: CommandConsole, report: Report) -> None:
    found = findings(report)
    if found:
        is_alone = report.cluster is None
        against = report.measured[0].combination.label if is_alone else "the first of the same fault"
        console.print(f"[bold]What stands out[/] against {against}")
        for finding in found:
            console.print(Text(f"  {finding.text}"))
        console.print()
    for row in report.rows:
        for note in row.notes:
            console.print(Text(f"{row.combination.label}: {note}"))
        if row.failed:
            console.print(Text(f"{row.combination.label}: not run: {row.failed}", style="red"))
    console.print(Text(report.about_ranges, style="dim"))
    if sys.stdout.isatty() and report.rounds_done >= ROUNDS_MIN:
        console.print(
            Text("green, yellow: better, worse than the first row (of the same fault), and apart from it", style="dim")
        )
