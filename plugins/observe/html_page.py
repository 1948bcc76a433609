"""Pure core: pages of HTML: frame, style, links and tables. No script, nothing from elsewhere; all text is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlencode

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CONTENT_TYPE: Final = "text/html; charset=utf-8"

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1d2126;--dim:#626a73;--line:#dcdcd8;--paper:#fff;--link:#2a6fb0}
@media (prefers-color-scheme:dark){:root{--ink:#e6e8ea;--dim:#98a1ab;--line:#343a41;--paper:#15181c;--link:#6fb1ec}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1080px;padding:1.6rem 1.2rem 3rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
h1{margin:.2rem 0 .6rem;font-size:1.6rem;line-height:1.2;overflow-wrap:anywhere}
a{color:var(--link)}
nav,label{color:var(--dim);font-size:.9rem}
table{border-collapse:collapse;width:100%;margin:1rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .7rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;overflow-wrap:anywhere}
thead th{color:var(--dim);font-weight:500;vertical-align:bottom}
tbody th{font-weight:500}
td,th+th{text-align:right}
input,button{font:inherit;padding:.2rem .5rem;max-width:100%}
@media (max-width:640px){
thead{display:none}
tr,tbody th,td{display:block}
tbody th{padding-top:.7rem;border:0}
td{display:flex;justify-content:space-between;gap:1rem;padding:.1rem 0;border:0}
td::before,tbody th::before{content:attr(data-of);color:var(--dim)}
tbody th::before{margin-right:.5rem}
tr{border-bottom:1px solid var(--line);padding-bottom:.5rem}
}
"""


@attrs.frozen
class Link:
    """A link to another page.

    Attributes:
        text: What is shown.
        path: Where it leads.
        query: The parameters that go with it.
    """

    text: str
    path: str
    query: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def html(self) -> str:
        """The link as HTML."""
        target = f"{self.path}?{urlencode(self.query)}" if self.query else self.path
        return f'<a href="{escape(target)}">{escape(self.text)}</a>'


Cell: TypeAlias = "str | int | Link"


def page(title: str, parts: Iterable[str], *, crumbs: Sequence[Link] = ()) -> str:
    """Return a whole page.

    Args:
        title: Text of its heading and its tab.
        parts: HTML below the heading.
        crumbs: The pages above this one.
    """
    nav = f"<nav>{' / '.join(link.html for link in crumbs)}</nav>\n" if crumbs else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head>\n<body>\n"
        f"{nav}<h1>{escape(title)}</h1>\n{''.join(parts)}</body></html>\n"
    )


def paragraph(*words: str | Link) -> str:
    """Return a paragraph of text and links; nothing for no words."""
    return f"<p>{' '.join(map(_inline, words))}</p>\n" if words else ""


def search_form(path: str, label: str, name: str, value: str) -> str:
    """Return a field that asks for `path` with what is put into it as the parameter `name`."""
    return (
        f'<form action="{escape(path)}"><label>{escape(label)} '
        f'<input type="search" name="{escape(name)}" value="{escape(value)}"></label> <button>Show</button></form>\n'
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a table. A row's first cell names it; on a narrow screen the others stand below that, with their titles.

    Args:
        columns: Their titles.
        rows: One cell for each column; whole numbers get their thousands marked.
    """
    head = "".join(f"<th>{escape(title)}</th>" for title in columns)
    body = "".join(_row(columns, row) for row in rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>\n"


def _row(columns: Sequence[str], row: Sequence[Cell]) -> str:
    cells = (
        f'<td data-of="{escape(title)}">{_inline(cell)}</td>' for title, cell in zip(columns[1:], row[1:], strict=True)
    )
    return f'<tr><th data-of="{escape(columns[0])}">{_inline(row[0])}</th>{"".join(cells)}</tr>\n'


def _inline(cell: Cell) -> str:
    if isinstance(cell, Link):
        return cell.html
    return f"{cell:,}" if isinstance(cell, int) else escape(cell)
