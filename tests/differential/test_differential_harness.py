"""The harness of the differential tests itself: what is compared, what is made equal, what is kept."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from . import golden
from .batches import T0, batch, record, records
from .comparison import Difference, KnownDifference, compare, load_known
from .conversation import Step
from .normalise import Normaliser

NOW_MS = 1_900_000_000_000


@pytest.fixture
def normaliser() -> Normaliser:
    return Normaliser(host="127.0.0.1", port=9092, now_ms=NOW_MS)


def _step(answer: Any, version: int = 0) -> Step:
    return Step("Metadata", version, "plain", answer)


def test_every_field_that_differs_is_told_with_its_path() -> None:
    kafka = _step({"topics": [{"name": "a", "error_code": 3}], "throttle_time_ms": 0})
    ours = _step({"topics": [{"name": "a", "error_code": 0}], "controller_id": 1})

    expected = [("topics.0.error_code", 3, 0), ("throttle_time_ms", 0, "<missing>"), ("controller_id", "<missing>", 1)]
    assert [(d.path, d.kafka, d.ours) for d in compare("s", [kafka], [ours])] == expected


def test_lists_of_different_lengths_differ_in_length() -> None:
    found = compare("s", [_step({"isr_nodes": [1]})], [_step({"isr_nodes": [1, 2]})])

    assert found == [Difference("s", "Metadata v0: plain", "isr_nodes.length", 1, 2)]


def test_true_is_not_one() -> None:
    assert len(compare("s", [_step({"is_internal": True})], [_step({"is_internal": 1})])) == 1


def test_a_closed_connection_is_not_an_answer() -> None:
    assert compare("s", [_step("connection closed")], [_step({})])[0].path == "(answer)"


def test_a_session_that_took_another_course_is_compared_no_further() -> None:
    kafka = [_step({}), _step({}, 1)]
    ours = [Step("Session", 0, "broken off", "KeyError: 'topics'"), _step({"error_code": 1}, 1)]

    assert [d.path for d in compare("s", kafka, ours)] == ["(steps)"]


def test_a_known_difference_covers_by_pattern() -> None:
    known = KnownDifference(["api_versions"], "ApiVersions v?: *", "api_keys.*", "not built yet", ours="<missing>")

    assert known.covers(Difference("api_versions", "ApiVersions v3: plain", "api_keys.8", {}, "<missing>"))
    assert not known.covers(Difference("api_versions", "ApiVersions v3: plain", "api_keys.8", {}, {}))


def test_an_entry_with_several_paths_is_an_entry_for_each(tmp_path: Path) -> None:
    listed = tmp_path / "differences.toml"
    listed.write_text(
        '[[difference]]\nsessions = ["s"]\nstep = "*"\npath = ["a", "b"]\nreason = "two"\n'
        '[[difference]]\nsessions = ["s"]\nstep = "*"\npath = "c"\nreason = "one"\n'
    )

    assert [(known.path, known.reason) for known in load_known(listed)] == [("a", "two"), ("b", "two"), ("c", "one")]


@pytest.mark.parametrize("listed", ["differences.toml", "chance/known.toml"])
def test_the_lists_of_known_differences_give_reasons(listed: str) -> None:
    for known in load_known(Path(__file__).parent / listed):
        assert len(known.reason) > 20, known


def test_ids_are_named_after_their_topics(normaliser: Normaliser) -> None:
    topic_id = uuid.uuid5(uuid.NAMESPACE_URL, "a")
    first = normaliser.answer("Metadata", {"topics": [{"name": "a", "topic_id": topic_id}]})
    later = normaliser.answer("Fetch", {"responses": [{"topic_id": topic_id}]})

    assert first == {"topics": [{"name": "a", "topic_id": "<id of a>"}]}
    assert later == {"responses": [{"topic_id": "<id of a>"}]}


def test_numbers_the_broker_draws_are_named_in_order_of_appearance(normaliser: Normaliser) -> None:
    ids = [normaliser.answer("InitProducerId", {"producer_id": number})["producer_id"] for number in (7, 9, 7, -1)]

    assert ids == ["<producer id 1>", "<producer id 2>", "<producer id 1>", -1]


def test_times_near_now_are_made_equal_and_others_kept(normaliser: Normaliser) -> None:
    answer = {"timestamp": NOW_MS + 5, "offset": 5, "error_message": f"at {NOW_MS}, not {T0}"}

    expected = {"timestamp": "<now>", "offset": 5, "error_message": f"at <now>, not {T0}"}
    assert normaliser.answer("ListOffsets", answer) == expected


def test_record_batches_show_their_headers_and_what_is_cut_off(normaliser: Normaliser) -> None:
    content = batch(records(b"a", b"b"), base_offset=5) + batch()[:20]
    whole, cut = normaliser.answer("Fetch", {"records": content})["records"]

    assert (whole["base_offset"], whole["count"], whole["timestamps"]) == (5, 2, [T0, T0])
    assert cut == {"cut_off_bytes": 20}


def test_a_golden_file_gives_back_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    wide = {"topics": [{"name": "x" * 100, "partitions": [{"error_code": i} for i in range(9)]}], "rack": None}
    steps = [_step({"a": 1}, 0), _step({"a": 1}, 1), _step(wide, 2), _step("connection closed", 3), _step({"a": 1}, 3)]

    assert golden.save("one", steps, "somewhere")
    assert golden.load("one") == steps
    assert not golden.save("one", steps, "somewhere else")
    assert max(map(len, golden.path_of("one").read_text().splitlines())) <= 180


def test_the_sessions_batches_are_what_our_own_code_reads() -> None:
    from odradek.kernel.records.batch import is_crc_valid, read_header
    from odradek.kernel.records.record import decode_records

    content = batch([record(b"v", b"k", headers=[(b"h", None)]), record(offset_delta=1)], producer=(9, 1, 3))
    header = read_header(content)
    found = list(decode_records(content[61:], header.records_count))

    assert is_crc_valid(content, 0, header)
    assert (header.producer_id, header.last_sequence, header.last_offset_delta) == (9, 4, 1)
    assert [(r.key, r.value, r.headers) for r in found] == [(b"k", b"v", (("h", None),)), (None, b"value", ())]
