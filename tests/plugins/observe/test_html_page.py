from html.parser import HTMLParser

from odradek.plugins.observe.html_page import Link, page, paragraph, search_form, table

NASTY = """<script>alert("1")</script>&'"""


class Reader(HTMLParser):
    """Reads a page as a browser does: what elements there are, their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_whatever_text_says_it_stays_text() -> None:
    parts = [
        paragraph(NASTY, Link(NASTY, "/topic", {"name": NASTY})),
        search_form("/topics", NASTY, "contains", NASTY),
        table([NASTY, NASTY], [[NASTY, NASTY]]),
    ]
    read = Reader(page(NASTY, parts, crumbs=[Link(NASTY, "/")]))

    assert "script" not in read.elements
    assert read.text.count(NASTY) == 2 + 1 + 2 + 1 + 4
    assert ("value", NASTY) in read.attributes
    assert ("href", "/topic?name=%3Cscript%3Ealert%28%221%22%29%3C%2Fscript%3E%26%27") in read.attributes
    assert not {name for name, _ in read.attributes if name.startswith("on")}


def test_a_page_needs_nothing_from_elsewhere() -> None:
    read = Reader(page("t", [table(["a"], [["b"]])]))

    assert not {"script", "link", "img", "iframe"} & set(read.elements)
    assert "url(" not in read.text
    assert "@import" not in read.text


def test_whole_numbers_have_their_thousands_marked_and_each_cell_its_title_for_narrow_screens() -> None:
    read = Reader(table(["Topic", "Bytes"], [["a", 1234567]]))

    assert "1,234,567" in read.text
    assert read.attributes == [("data-of", "Topic"), ("data-of", "Bytes")]


def test_no_words_are_no_paragraph() -> None:
    assert paragraph() == ""
