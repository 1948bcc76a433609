"""The page: one file that needs nothing else, and plots that show what they are told."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.lab.compare.faults import Cluster
from odradek.lab.compare.figures import Spread, Unit
from odradek.lab.compare.page import page
from odradek.lab.compare.plots import Lane, PlotRow, plot
from tests.lab.compare.results import combination, figures, report, usual_report

VOID = {"meta", "br"}


class Balance(HTMLParser):
    """Sees that every element is closed where it should be, and collects what a page fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in {"src", "href", "srcset"}]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> Balance:
    balance = Balance()
    balance.feed(text)
    balance.close()

    assert not balance.open
    return balance


def test_the_page_is_whole_and_needs_nothing_from_elsewhere() -> None:
    text = page(usual_report())
    balance = read(text)

    assert balance.fetched == []
    assert "@import" not in text
    assert "url(" not in text
    assert re.findall(r"<script(.*?)>", text) == [' type="application/json" id="report"']


def test_the_page_tells_what_was_run_where_and_how_far_to_trust_it() -> None:
    told = read(page(usual_report())).text

    for part in (
        "odradek compare --vary odradek.storage=segment,memory",
        "one & only",
        "records = 20000",
        "seed 7",
        "Differences smaller than these ranges mean nothing",
        "zzz · <b>: the broker did not start",
        "zzz · <b>: a note",
        "segment · delete",
        "100 (90.0-110)",
    ):
        assert part in told


def test_the_page_is_made_for_light_and_dark() -> None:
    text = page(usual_report())

    assert "prefers-color-scheme:dark" in text
    used = set(re.findall(r"var\(--([\w-]+)\)", text))
    assert used <= set(re.findall(r"--([\w-]+):", text))


def test_the_figures_in_the_page_can_be_read_again() -> None:
    evil = report((combination("</script><script>alert(1)"), [figures()], ""), rounds=1, text="</script>")
    (data,) = re.findall(r'<script type="application/json" id="report">(.*?)</script>', page(evil), re.DOTALL)

    assert json.loads(data) == evil.as_json()


def test_a_report_without_figures_is_a_page_too() -> None:
    read(page(report((combination("zzz"), [], "it did not start"))))


def test_secrets_are_not_in_the_page() -> None:
    one = combination("segment")
    choice = one.varied[0]
    varied = (type(choice)("odradek.secret", choice.scope, "opensesame", is_secret=True),)
    hidden = type(one)(varied, {}, {"odradek.secret": "opensesame"}, frozenset({"odradek.secret"}))
    text = page(report((hidden, [figures()], "")))

    assert "opensesame" not in text
    assert "broker odradek.secret=(secret)" in text


def test_a_page_says_so_when_nothing_stands_out() -> None:
    same = [figures(1.0), figures(1.1), figures(0.9)]
    text = page(report((combination("a"), same, ""), (combination("b"), same, "")))

    assert "No figure lies apart" in text


def test_what_all_are_set_to_is_told_once() -> None:
    assert page(usual_report()).count("broker log.cleaner.backoff.ms=200") == 1


@given(
    st.lists(st.lists(st.floats(0, 1e12), min_size=1, max_size=4) | st.none(), min_size=1, max_size=5),
    st.sampled_from(Unit),
    st.booleans(),
)
@example(lanes=[[5e-324]], unit=Unit.SECONDS, is_log=True)
@example(lanes=[[5e-324]], unit=Unit.SECONDS, is_log=False)
def test_a_plot_is_well_formed_and_stays_within_its_bounds(
    lanes: list[list[float] | None], unit: Unit, is_log: bool
) -> None:
    rows = [
        PlotRow("a <label> & more", 9, [Lane(f"p{place}", Spread.of(values or ()))])
        for place, values in enumerate(lanes)
    ]
    root = ElementTree.fromstring(plot("title", rows, unit, is_log=is_log))
    _, _, width, height = map(float, root.attrib["viewBox"].split())

    for circle in root.iter("circle"):
        assert 0 <= float(circle.attrib["cx"]) <= width
        assert 0 <= float(circle.attrib["cy"]) <= height
    for rectangle in root.iter("rect"):
        assert float(rectangle.attrib["width"]) >= 0
        assert float(rectangle.attrib["x"]) + float(rectangle.attrib["width"]) <= width
    assert len(list(root.iter("g"))) == sum(values is not None for values in lanes)


@pytest.mark.parametrize("is_log", [False, True])
def test_larger_values_stand_further_right(is_log: bool) -> None:
    spread = Spread((1.0, 20.0, 300.0))
    root = ElementTree.fromstring(plot("", [PlotRow("", 0, [Lane("", spread)])], Unit.SECONDS, is_log=is_log))
    places = [float(circle.attrib["cx"]) for circle in root.iter("circle") if circle.attrib["class"] == "round"]

    assert places == sorted(places)
    assert len(set(places)) == 3


def test_a_long_label_is_cut_in_its_middle_and_told_whole() -> None:
    label = "a" * 40 + "b" * 40
    text = plot("", [PlotRow(label, 0, [Lane("", Spread((1.0,)))])], Unit.SECONDS)

    assert "a…b" in text
    assert f"<title>{label}</title>" in text


def test_on_a_narrow_screen_every_figure_s_cell_says_what_it_is_of() -> None:
    html = page(usual_report())
    tables = html.partition("<h3>The settings</h3>")[0]

    assert re.findall(r"<td(?! data-of=\"[^\"]+\")", tables) == []
    assert 'data-of="outlive kill -9"' in html
    assert 'data-of="segment · delete"' in html


def test_a_plot_is_no_wider_than_a_narrow_screen_so_that_its_letters_are_not_made_smaller() -> None:
    widths = re.findall(r'class="plot" viewBox="0 0 (\d+) ', page(usual_report()))

    assert widths
    assert max(map(int, widths)) <= 420 - 2 * 24


def test_the_page_of_a_cluster_tells_what_happened_and_leaves_out_what_was_not_measured() -> None:
    faulty = attrs.evolve(combination("isr"), fault="leader-killed")
    known = {"unavailable_s", "p50_ms", "p99_ms", "p999_ms", "bytes_per_record", "acknowledged", "lost", "doubled"}
    one = {name: value if name in known else None for name, value in figures().items()}
    of_cluster = attrs.evolve(report((faulty, [one], "")), cluster=Cluster(3, 2))
    text = page(of_cluster)
    told = read(text).text

    for part in ("3 brokers, 2 replicas", "the process of the leader is killed", "Time without service", "no service"):
        assert part in told
    assert 'data-of="doubled"' in text
    assert 'data-of="outlive kill -9"' not in text
    assert of_cluster.as_json()["combinations"][0]["fault"] == "leader-killed"
