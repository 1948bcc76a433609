"""Pure core: a comparison as one HTML page that needs nothing else: no script, no font, no picture from elsewhere.

All figures stand in it as JSON too (`<script type="application/json" id="report">`), for whoever goes on with them.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Final

import attrs

from .faults import BY_NAME as FAULTS
from .figures import (
    ACK_PERCENTILES,
    ALL,
    BY_NAME,
    END_TO_END_PERCENTILES,
    FAULT_PERCENTILES,
    ROUNDS_MIN,
    UNAVAILABLE,
    Group,
)
from .findings import findings, is_better
from .page_style import STYLE
from .plots import Lane, PlotRow, plot
from .quantities import column_scale, spread_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .figures import Figure
    from .report import Report, Row


@attrs.frozen
class _Picture:
    """One plot of the page.

    Attributes:
        title: Above it.
        text: Below that: what it shows.
        lanes: The figures of each row, and what each lane is called.
        is_log: Whether the scale is logarithmic.
    """

    title: str
    text: str
    lanes: Sequence[tuple[str, Figure]]
    is_log: bool = False


def _percentile_lanes(figures: Iterable[Figure]) -> list[tuple[str, Figure]]:
    return [(figure.title, figure) for figure in figures]


_PICTURES: Final = (
    _Picture("Time without service", UNAVAILABLE.text, [("", UNAVAILABLE)]),
    _Picture(
        "Latency to the acknowledgement, through the fault",
        f"{FAULT_PERCENTILES[0].text}; the scale is logarithmic",
        _percentile_lanes(FAULT_PERCENTILES),
        is_log=True,
    ),
    _Picture("Records produced", BY_NAME["produce_records"].text, [("", BY_NAME["produce_records"])]),
    _Picture(
        "Bytes produced and read",
        "keys and values a second: produced at full speed; read just after; read cold: after kill -9 and a restart, "
        "with the files out of the page cache",
        [
            ("produce", BY_NAME["produce_bytes"]),
            ("read", BY_NAME["read_bytes"]),
            ("read cold", BY_NAME["cold_read_bytes"]),
        ],
    ),
    _Picture(
        "Latency to the acknowledgement",
        f"at a calm pace, {ACK_PERCENTILES[0].text}; the scale is logarithmic",
        _percentile_lanes(ACK_PERCENTILES),
        is_log=True,
    ),
    _Picture(
        "Latency from end to end",
        f"at a calm pace, {END_TO_END_PERCENTILES[0].text}; the scale is logarithmic",
        _percentile_lanes(END_TO_END_PERCENTILES),
        is_log=True,
    ),
    _Picture(
        "Processor time a record",
        "of the broker or the brokers, for each record produced at full speed, and for each record read just after",
        [("produced", BY_NAME["produce_cpu"]), ("read", BY_NAME["read_cpu"])],
    ),
    _Picture("Bytes a record", BY_NAME["bytes_per_record"].text, [("", BY_NAME["bytes_per_record"])]),
    _Picture("Processor time in all", BY_NAME["cpu"].text, [("", BY_NAME["cpu"])]),
    _Picture("Memory", BY_NAME["memory"].text, [("", BY_NAME["memory"])]),
    _Picture(
        "Bytes at rest",
        "what was sent, what the broker's folder grew by, what the folder that is the object store holds",
        [("sent", BY_NAME["produced"]), ("on disk", BY_NAME["disk"]), ("in store", BY_NAME["store"])],
    ),
    _Picture(
        "Amplification",
        "written: to disk, for each byte produced; read cold: from disk, for each byte that arrived at the client",
        [("written", BY_NAME["write_amplification"]), ("read cold", BY_NAME["read_amplification"])],
    ),
    _Picture(
        "How long things take",
        "until the files came to rest after the last read; from the start after kill -9 until the broker served",
        [("to rest", BY_NAME["settled"]), ("restart", BY_NAME["recovery"])],
    ),
)


def page(report: Report) -> str:
    """Return the page."""
    title = f"odradek compare: {report.workload.name}"
    data = json.dumps(report.as_json(), ensure_ascii=False).replace("</", "<\\/")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head><body><main>",
            _header(report),
            _summary(report),
            _kept(report),
            _plots(report),
            _all_figures(report),
            _how(report),
            f'</main><script type="application/json" id="report">{data}</script></body></html>',
            "",
        ]
    )


def _header(report: Report) -> str:
    workload = report.workload
    facts = [
        f"{len(report.rows)} combinations of {', '.join(map(_code, report.keys))}",
        *([f"{cluster.brokers} brokers, {cluster.replicas} replicas"] if (cluster := report.cluster) else []),
        f"{report.rounds_text}, interleaved",
        f"{workload.records_all:,} records of {workload.value_bytes:,} bytes",
        f"seed {report.seed}",
        escape(report.made_at.replace("T", " ").replace("+00:00", " UTC")),
    ]
    text = f'<p class="lead">{escape(workload.text)}</p>' if workload.text else ""
    return (
        f'<header><p class="brand">odradek compare</p><h1>{escape(workload.name)}</h1>{text}'
        f'<p class="facts">{" · ".join(facts)}</p></header>'
    )


def _summary(report: Report) -> str:
    parts = [f'<p class="bad">{escape(line)}</p>' for line in (*report.losses, *report.failures)]
    parts += [
        f'<p class="remark">{escape(f"{row.combination.label}: {note}")}</p>'
        for row in report.rows
        for note in row.notes
    ]
    found = findings(report)
    if found:
        items = "".join(f"<li>{escape(finding.text)}</li>" for finding in found)
        parts.append(f"<ul>{items}</ul>")
    elif report.rounds_done >= ROUNDS_MIN:
        parts.append("<p>No figure lies apart from the first combination's by more than its range.</p>")
    parts.append(f'<p class="remark">{escape(report.about_ranges)}</p>')
    return f"<section><h2>What stands out</h2>{''.join(parts)}</section>"


_OF_A_BROKER: Final = (
    "<b>removed</b>: gone as the topic's cleanup.policy says. <b>lost</b>: gone although no setting allows it. "
    "<b>outlive kill -9</b>: what is there after the process was killed (kill -9, not a loss of power) and started "
    "again. <b>die by it</b>: what was there before; what a policy had removed by then is not among it."
)
_OF_A_CLUSTER: Final = (
    "<b>lost</b>: not there, once all brokers were back. <b>doubled</b>: in the log more than once, told or not. "
    "<b>given up</b>: the producer got an error, so nothing was promised. kill -9 ends processes, not the power."
)


def _kept(report: Report) -> str:
    figures = [
        figure
        for figure in ALL
        if figure.group is Group.KEPT and any(row.figures[figure.name] is not None for row in report.measured)
    ]
    heads = "".join(f'<th title="{escape(figure.text)}">{escape(figure.title)}</th>' for figure in figures)
    rows = [
        f"<tr><th>{escape(row.combination.label)}</th>{''.join(_kept_cell(figure, row) for figure in figures)}</tr>"
        for row in report.measured
    ]
    told = _OF_A_BROKER if report.cluster is None else _OF_A_CLUSTER
    return (
        f"<section><h2>{Group.KEPT.value}</h2>{_table('', heads, rows)}"
        f'<p class="remark">Every acknowledged record was looked for where it was acknowledged. {told}</p></section>'
    )


def _table(style: str, heads: str, rows: Iterable[str]) -> str:
    head = f"<thead><tr><th></th>{heads}</tr></thead>" if heads else ""
    return f'<div class="wide"><table class="{style}">{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _kept_cell(figure: Figure, row: Row) -> str:
    spread = row.figures[figure.name]
    verdict = ""
    if figure.is_better_high is False and spread is not None:
        verdict = "worse" if spread.high else "better"
    return _cell(figure.title, verdict, escape(spread_text(spread, figure.unit, 1.0)))


def _cell(of: str, style: str, html: str) -> str:
    """Return a cell that says what it is of: where a screen is too narrow for a table each is a line of its own."""
    return f'<td data-of="{escape(of)}" class="{style}">{html}</td>'


def _plots(report: Report) -> str:
    colours = _colours(report)
    pictures = []
    for picture in _PICTURES:
        lanes = [
            (name, figure)
            for name, figure in picture.lanes
            if any(row.figures[figure.name] is not None for row in report.measured)
        ]
        if not lanes:
            continue
        rows = [
            PlotRow(
                row.combination.label, colours[index], [Lane(name, row.figures[figure.name]) for name, figure in lanes]
            )
            for index, row in enumerate(report.measured)
        ]
        svg = plot(picture.title, rows, lanes[0][1].unit, is_log=picture.is_log)
        pictures.append(
            f"<figure><figcaption><b>{escape(picture.title)}</b> {escape(picture.text)}</figcaption>{svg}</figure>"
        )
    return (
        '<section><h2>Plots</h2><p class="remark">A bar or a large dot is the median, the line its range, each small '
        f"dot a round. Colours tell values of {_code(report.keys[0])} apart.</p>"
        f'<div class="plots">{"".join(pictures)}</div></section>'
        if pictures
        else ""
    )


def _colours(report: Report) -> list[int]:
    """Return a colour for each row: that of its value of the first key."""
    values = list(dict.fromkeys(row.combination.varied[0].value for row in report.rows))
    return [values.index(row.combination.varied[0].value) for row in report.measured]


def _all_figures(report: Report) -> str:
    rows = report.measured
    if not rows:
        return ""
    heads = "".join(f"<th>{escape(row.combination.label)}</th>" for row in rows)
    lines: list[str] = []
    for group in Group:
        of_group = [f'<tr class="group"><th colspan="{len(rows) + 1}">{escape(group.value)}</th></tr>']
        of_group += [
            _figure_line(figure, report)
            for figure in ALL
            if figure.group is group and any(row.figures[figure.name] is not None for row in rows)
        ]
        lines += of_group if len(of_group) > 1 else []
    than = "the first column" if report.cluster is None else "the first column of the same fault"
    return (
        '<section><h2>All figures</h2><p class="remark">Median (smallest-largest). '
        '<span class="better">Better</span> or <span class="worse">worse</span> than '
        f"{than}, and apart from it; everything else is the same as far as these rounds can tell.</p>"
        f"{_table('all', heads, lines)}</section>"
    )


def _figure_line(figure: Figure, report: Report) -> str:
    rows = report.measured
    divisor, unit = column_scale((row.figures[figure.name] for row in rows), figure.unit)
    cells = []
    for row in rows:
        spread, baseline = row.figures[figure.name], report.baseline_of(row).figures[figure.name]
        verdict = None if spread is None or baseline is None else is_better(figure, spread, baseline)
        style = {True: "better", False: "worse", None: ""}[verdict]
        median, bracket, bounds = spread_text(spread, figure.unit, divisor).partition(" (")
        small = f"<small>({escape(bounds)}</small>" if bracket else ""
        cells.append(_cell(row.combination.label, style, f"<span>{escape(median)} {small}</span>"))
    name = f"{escape(figure.title)} <small>{escape(unit)}</small>"
    return f'<tr><th title="{escape(figure.text)}">{name}</th>{"".join(cells)}</tr>'


def _how(report: Report) -> str:
    machine = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in report.machine.items())
    figures = "".join(
        f"<dt>{escape(figure.group.value)}: {escape(figure.title)}</dt><dd>{escape(figure.text)}</dd>" for figure in ALL
    )
    faults = "".join(
        f"<dt>{escape(fault.name)}</dt><dd>{escape(fault.text)}</dd>"
        for fault in FAULTS.values()
        if any(row.combination.fault == fault.name for row in report.rows)
    )
    return (
        "<section><h2>How it was run</h2>"
        f"<pre>{escape(report.command)}</pre>"
        f"{'<h3>What happens</h3><dl>' + faults + '</dl>' if faults else ''}"
        f"<h3>The machine</h3><dl>{machine}</dl>"
        "<h3>The workload</h3><p class='remark'>Save it as a .toml file to run it again, or to change it.</p>"
        f"<pre>{escape(report.workload.as_toml())}</pre>"
        "<h3>The settings</h3>"
        f"{_table('settings', '', _settings(report))}"
        f"<details><summary>What each figure is</summary><dl>{figures}</dl></details></section>"
    )


def _settings(report: Report) -> list[str]:
    """Return the lines of the table of settings: what all have, then what each has besides."""
    by_row = [
        {
            f"{scope} {key}={text}": None
            for scope, some in row.combination.shown_settings.items()
            for key, text in some.items()
        }
        for row in report.rows
    ]
    common = [line for line in by_row[0] if all(line in lines for lines in by_row)] if by_row else []
    named = [("all", common)]
    for row, lines in zip(report.rows, by_row, strict=True):
        named.append((row.combination.label, [line for line in lines if line not in common]))
    return [
        f"<tr><th>{escape(name)}</th><td><code>{'<br>'.join(map(escape, lines))}</code></td></tr>"
        for name, lines in named
    ]


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"
