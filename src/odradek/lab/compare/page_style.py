"""Pure core: the style sheet of the page: light and dark, for screens of any width and for paper."""

from __future__ import annotations

from typing import Final

_LIGHT: Final = (
    "--paper:#fff;--card:#f7f7f5;--ink:#1d2126;--dim:#626a73;--line:#dcdcd8;--better:#1b7f4d;--worse:#b3541e;"
)
_DARK: Final = (
    "--paper:#15181c;--card:#1d2126;--ink:#e6e8ea;--dim:#98a1ab;--line:#343a41;--better:#5fcf95;--worse:#f0a06a;"
)

_LIGHT_COLOURS: Final = ("#2a6fb0", "#c8751c", "#2b8f68", "#9b4a94", "#b93f45", "#5a68c8", "#857425", "#2d8fa3")
_DARK_COLOURS: Final = ("#6fb1ec", "#f0a955", "#62c9a0", "#cf8bc9", "#ee8286", "#9aa6f5", "#c7b45c", "#6ec6d8")
"""Far apart in lightness as well, for those who do not see colours as most do."""


def _colours(colours: tuple[str, ...]) -> str:
    return "".join(f"--c{number}:{colour};" for number, colour in enumerate(colours))


_CLASSES: Final = "\n".join(f".c{number}{{color:var(--c{number})}}" for number in range(len(_LIGHT_COLOURS)))

_RULES: Final = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1240px;margin:0 auto;padding:2.2rem 1.4rem 4rem}
.brand{margin:0;color:var(--dim);font-size:.85rem;letter-spacing:.09em;text-transform:uppercase}
h1{margin:.1rem 0 .2rem;font-size:2.1rem;line-height:1.15}
h2{margin:2.6rem 0 .7rem;font-size:1.25rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}
h3{margin:1.6rem 0 .4rem;font-size:1rem}
.lead{margin:.2rem 0;font-size:1.05rem}
.facts,.remark{color:var(--dim);margin:.4rem 0;font-size:.92rem}
ul{margin:.3rem 0;padding-left:1.2rem}
li{margin:.2rem 0}
code,pre{font:.85rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.7rem .9rem;overflow-x:auto}
.bad{background:color-mix(in srgb,var(--worse) 14%,transparent);border-left:3px solid var(--worse);margin:.5rem 0;
padding:.4rem .8rem}
.better{color:var(--better)}
.worse{color:var(--worse);font-weight:600}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,360px),1fr));gap:1.1rem;align-items:start}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.9rem 1rem .5rem}
figcaption{font-size:.88rem;color:var(--dim);margin-bottom:.5rem;line-height:1.35}
figcaption b{display:block;color:var(--ink);font-size:1rem}
.plot{display:block;width:100%;height:auto;font:12px system-ui,-apple-system,"Segoe UI",sans-serif}
.plot text{fill:var(--ink)}
.plot .tick,.plot .lane,.plot .unknown{fill:var(--dim);font-size:11px}
.plot .value{font-variant-numeric:tabular-nums;font-weight:600}
.plot .grid{stroke:var(--line);stroke-width:1}
.plot .bar{fill:currentColor;opacity:.28}
.plot .range{stroke:currentColor;stroke-width:1.4;fill:none}
.plot .round{fill:currentColor;opacity:.75}
.plot .median{fill:currentColor}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .75rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
thead th{color:var(--dim);font-weight:500;vertical-align:bottom}
tbody th,thead th:first-child{text-align:left;font-weight:500;position:sticky;left:0;background:var(--paper)}
tr.group th{color:var(--ink);font-weight:700;padding-top:1rem}
td small,th small{color:var(--dim);font-weight:400}
.settings td{text-align:left;white-space:normal}
.settings th{vertical-align:top}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;font-size:.92rem;margin:.4rem 0}
dt{color:var(--dim)}
dd{margin:0}
details{margin-top:1.6rem}
summary{cursor:pointer}
@media (max-width:640px){
dl{grid-template-columns:1fr}
dd{margin-bottom:.4rem}
main{padding:1.2rem .8rem 3rem}
figure{padding:.8rem .6rem .4rem}
.wide thead{display:none}
.wide table,.wide tbody,.wide tr,.wide th,.wide td{display:block;white-space:normal}
.wide tbody th{position:static;padding:.7rem 0 .1rem;font-weight:600;border:0}
.wide td{padding:.15rem 0}
.wide td[data-of]{display:flex;justify-content:space-between;gap:1rem}
.wide td[data-of]::before{content:attr(data-of);color:var(--dim);text-align:left}
.wide code{overflow-wrap:anywhere}}
@media print{main{max-width:none;padding:0}figure{break-inside:avoid}}
"""

STYLE: Final = (
    f"\n:root{{color-scheme:light dark;{_LIGHT}{_colours(_LIGHT_COLOURS)}}}\n"
    f"@media (prefers-color-scheme:dark){{:root{{{_DARK}{_colours(_DARK_COLOURS)}}}}}"
    f"{_RULES}{_CLASSES}\n"
)
