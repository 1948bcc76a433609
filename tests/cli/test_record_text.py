"""Records as text: formats, lines, JSON, and places in a log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.offset_spec import OffsetSpec, Where, parse_moment, parse_offset, place
from odradek.cli.record_format import ShownRecord, compile_format, json_line, unescape
from odradek.cli.record_lines import DelimitedReader, JsonReader, ReadRecord
from odradek.kernel.errors import ConfigError

RECORD = ShownRecord("t", 3, 42, 1000, b"k", b"value", (("a", b"1"), ("b", None)))
NULLS = ShownRecord("t", 0, 0, -1, None, None, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%s\\n", b"value\n"),
        ("%t/%p@%o %T", b"t/3@42 1000"),
        ("%k(%K)=%s(%S)", b"k(1)=value(5)"),
        ("%h", b"a=1,b="),
        ("100%% \\x00\\t\\\\", b"100% \x00\t\\"),
        ("plain", b"plain"),
    ],
)
def test_a_format_writes_a_record(text: str, expected: bytes) -> None:
    assert expected == compile_format(text)(RECORD)


def test_null_shows_as_what_was_asked_for_and_has_the_size_minus_one() -> None:
    assert compile_format("%k:%s %K %S", null=b"NULL")(NULLS) == b"NULL:NULL -1 -1"


@pytest.mark.parametrize("text", ["%q", "%", "\\q", "\\"])
def test_an_unknown_piece_of_a_format_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="unknown"):
        compile_format(text)


def test_delimiters_are_written_as_in_c() -> None:
    assert unescape("\\x1f|\\n") == b"\x1f|\n"


@pytest.mark.parametrize("pieces", [[b"a=1\nb", b"=2\n", b"c"], [b"a=1\nb=2\nc"], [b"a", b"=", b"1", b"\n", b"b=2\nc"]])
def test_lines_are_records_however_they_arrive(pieces: list[bytes]) -> None:
    reader = DelimitedReader(key_delimiter=b"=")
    read = [record for piece in pieces for record in reader.feed(piece)] + list(reader.finish())

    assert [ReadRecord(b"a", b"1"), ReadRecord(b"b", b"2"), ReadRecord(None, b"c")] == read


def test_without_a_delimiter_the_whole_input_is_one_record() -> None:
    reader = DelimitedReader(delimiter=b"", key=b"file")

    assert [*reader.feed(b"a\nb"), *reader.feed(b"\nc"), *reader.finish()] == [ReadRecord(b"file", b"a\nb\nc")]


def test_empty_is_null_only_when_asked_for() -> None:
    assert list(DelimitedReader(key_delimiter=b":").feed(b":\n")) == [ReadRecord(b"", b"")]
    assert list(DelimitedReader(key_delimiter=b":", is_empty_null=True).feed(b":\n")) == [ReadRecord(None, None)]


data = st.none() | st.binary()


@given(data, data, st.lists(st.tuples(st.text(st.characters(codec="utf-8")), data)), st.integers(-1, 2**60))
def test_json_lines_read_back_as_they_were_written(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], timestamp: int
) -> None:
    line = json_line(ShownRecord("t", 3, 42, timestamp, key, value, headers))

    assert [ReadRecord(key, value, tuple(headers), timestamp, 3)] == list(JsonReader().feed(line))


def test_other_json_is_taken_as_its_text_and_headers_may_be_an_object() -> None:
    (record,) = JsonReader().feed(b'{"value": {"a": [1, 2]}, "key": 7, "headers": {"h": "x"}}\n')

    assert ReadRecord(b"7", b'{"a":[1,2]}', (("h", b"x"),)) == record


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"[]",
        b"{}",
        b'{"value": "x", "partition": "1"}',
        b'{"value": {"base64": "?"}}',
        b'{"value": "x", "header": {"h": "x"}}',
        b'{"value": "x", "headers": [["h"]]}',
    ],
)
def test_a_line_that_is_no_record_is_named_by_its_number(line: bytes) -> None:
    with pytest.raises(ConfigError, match="line 3"):
        list(JsonReader().feed(b'{"value": "fine"}\n\n' + line + b"\n"))


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("beginning", 10),
        ("earliest", 10),
        ("latest", 50),
        ("end", 50),
        ("20", 20),
        ("5", 10),
        ("99", 50),
        ("-10", 40),
        ("-1000", 10),
    ],
)
def test_a_place_means_an_offset_that_is_there(text: str, offset: int) -> None:
    assert offset == place(parse_offset(text), start=10, end=50)


def test_a_place_in_time_is_what_the_broker_found() -> None:
    spec = parse_offset("@2007-03-11T07:00:00Z")

    assert OffsetSpec(Where.TIMESTAMP, 1173596400000) == spec
    assert (place(spec, start=0, end=9, by_timestamp=4), place(spec, start=0, end=9)) == (4, 9)


@pytest.mark.parametrize(
    "text", ["1173596400000", "2007-03-11T07:00", "2007-03-11T08:00+01:00", "2007-03-11T07:00:00Z"]
)
def test_moments_are_milliseconds_or_dates_in_utc(text: str) -> None:
    assert parse_moment(text) == 1173596400000


@pytest.mark.parametrize("text", ["", "middle", "@", "@soon", "1.5", "--3"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_offset(text)
