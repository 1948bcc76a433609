"""Shell: how the demo looks: steps, tables, bars and checks, plain text where there is no terminal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.padding import Padding
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ..rich_console import CommandConsole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TextIO

WIDTH_MAX: Final = 96
_INDENT: Final = (0, 0, 0, 3)


class Stage:
    """Prints the demo and remembers its checks; used by one task."""

    def __init__(self, file: TextIO | None = None) -> None:
        self.console = CommandConsole(file=file, highlight=False, emoji=False)
        self.console.width = min(self.console.width if self.console.is_terminal else WIDTH_MAX, WIDTH_MAX)
        self.failed_checks: list[str] = []
        self.checks_count = 0
        self._steps_count = 0
        self._is_utf8 = self.console.encoding.lower().startswith("utf")

    def open(self, title: str, text: str) -> None:
        """Begin."""
        self.console.print()
        self.console.print(
            Panel(text, title=f"[bold]{title}[/]", title_align="left", border_style="cyan", padding=(1, 2))
        )

    def step(self, title: str) -> None:
        """Begin the next step."""
        self._steps_count += 1
        self.console.print()
        self.console.print(f"[bold cyan]{self._steps_count}[/]  [bold]{title}[/]")

    def say(self, text: str) -> None:
        """Print a paragraph; rich's markup is understood."""
        self.console.print(Padding(text, _INDENT, expand=False))

    def show(self, text: str) -> None:
        """Print lines as they are, standing back."""
        self.console.print(Padding(Text(text, style="dim"), _INDENT, expand=False))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table; numbers stand to the right, in groups of three digits."""
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        for number, name in enumerate(columns):
            is_number = all(isinstance(row[number], int) for row in rows)
            table.add_column(name, justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
        self.console.print(Padding(table, (1, 0, 1, 3), expand=False))

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """Show a bar while something long is done, on a terminal only; yields what to call with the count so far."""
        with Progress(
            TextColumn("   {task.description}"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        ) as progress:
            task = progress.add_task(what, total=total)
            yield lambda count: progress.update(task, completed=count)

    def check(self, text: str, *, holds: bool, detail: str = "") -> None:
        """Tell whether something holds; what does not fails the demo at its end.

        Args:
            text: What holds.
            holds: Whether it does.
            detail: What was seen where it does not.
        """
        self.checks_count += 1
        if holds:
            self._mark("green", "✓" if self._is_utf8 else "ok", text)
            return
        self.failed_checks.append(f"{text}{f': {detail}' if detail else ''}")
        self._mark("bold red", "✗" if self._is_utf8 else "FAILED", self.failed_checks[-1])

    def _mark(self, style: str, mark: str, text: str) -> None:
        """Print a mark with a text beside it, never below it."""
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row(Text(mark, style=style), Text(text))
        self.console.print(Padding(row, _INDENT, expand=False))

    def close(self, text: str) -> None:
        """End."""
        self.console.print()
        style = "red" if self.failed_checks else "green"
        self.console.print(Panel(text, border_style=style, padding=(0, 2)))
