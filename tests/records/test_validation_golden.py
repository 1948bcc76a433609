"""What our leader says of produced batches, against what Apache Kafka said of the same bytes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.records import scan, validation
from odradek.kernel.records.batch import TimestampType, assign_offset_and_epoch, is_crc_valid, read_header
from odradek.kernel.records.compression import CODECS
from odradek.kernel.records.produced import InvalidBatchError
from odradek.kernel.records.reader import read_records
from odradek.kernel.records.validation import ValidatedBatch, ValidationRules, validate_batch

GOLDEN = json.loads((Path(__file__).parent / "golden" / "produce_answers.json").read_text())
CASES = GOLDEN["cases"]
WRONG_LENGTH = "Kafka does not check a compressed record's length, and consumers stumble over it later"
DIFFERENCES = {
    **{
        f"plain: {what}, codec {codec}": WRONG_LENGTH
        for what in ("record length short", "record length long", "record length -1")
        for codec in (1, 3)
    },
    "plain: batch of 26 bytes": "Kafka reads beyond its end and answers UNKNOWN_SERVER_ERROR; it is CORRUPT_MESSAGE",
    "plain: batch of 30 bytes": "likewise",
    "plain: lz4 then zzz": "we do not guess what stands after an LZ4 frame",
    "plain: lz4 of two frames": "our library reads them",
}


@pytest.fixture(
    autouse=True,
    params=[
        pytest.param(scan.scan_records_in_python, id="python"),
        pytest.param(
            scan.scan_records_compiled,
            id="compiled",
            marks=pytest.mark.skipif(not scan.HAS_COMPILED_KERNEL, reason="the record kernel was not compiled"),
        ),
    ],
)
def _walk_by_either_twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "scan_records", request.param)


def of_each_group(*, is_refused: bool | None = None) -> pytest.MarkDecorator:
    """Give a test the cases of one group after the other, a group being what stands before the colon of their names.

    One test for each of hundreds of cases would cost more than the cases do.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for case in CASES:
        if case["name"] not in DIFFERENCES and is_refused in (None, case["answer"]["code"] != 0):
            groups.setdefault(case["name"].partition(":")[0], []).append(case)
    return pytest.mark.parametrize("cases", list(groups.values()), ids=list(groups))


def rules_of(topic: str, *, walks_records: bool) -> ValidationRules:
    configs: dict[str, str] = GOLDEN["topics"][topic]
    names = {codec.name: codec.compression_type for codec in CODECS} | {"uncompressed": CODECS[0].compression_type}
    stamps = configs.get("message.timestamp.type") == "LogAppendTime"
    return ValidationRules(
        max_message_bytes=int(configs.get("max.message.bytes", 1_048_588)),
        timestamp_type=TimestampType.LOG_APPEND_TIME if stamps else TimestampType.CREATE_TIME,
        timestamp_before_max_ms=int(configs.get("message.timestamp.before.max.ms", 2**63 - 1)),
        timestamp_after_max_ms=int(configs.get("message.timestamp.after.max.ms", 3_600_000)),
        compression=names.get(configs.get("compression.type", "producer")),
        is_compacted="compact" in configs.get("cleanup.policy", ""),
        walks_records=walks_records,
    )


def validate(case: dict[str, Any], *, walks_records: bool) -> tuple[bytearray, ValidatedBatch]:
    sent = bytearray.fromhex(case["sent"])
    stamp = case["answer"]["log_append_time_ms"]
    validated = validate_batch(
        sent,
        0,
        len(sent),
        rules_of(case["topic"], walks_records=walks_records),
        now_ms=case["sent_at_ms"] if stamp == -1 else stamp,
        produce_version=case["produce_version"],
        partition_name=f"{case['topic']}-0",
    )
    return sent, validated


def without_window(text: str | None) -> str | None:
    return text and re.sub(r"within \[.*\]", "within [window]", text)


def refusal(case: dict[str, Any]) -> dict[str, Any]:
    with pytest.raises(InvalidBatchError) as caught:
        validate(case, walks_records=True)
    error = caught.value
    found: dict[str, Any] = {"code": error.code, "base_offset": -1, "log_append_time_ms": -1}
    if case["produce_version"] >= 5:
        found["log_start_offset"] = 0 if error.is_from_log else -1
    if case["produce_version"] >= 8:
        found["record_errors"] = [[index, without_window(text)] for index, text in error.record_errors]
        found["error_message"] = error.error_message
    return found


@of_each_group(is_refused=True)
def test_refused_with_kafkas_own_answer(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        expected = dict(case["answer"])
        if "record_errors" in expected:
            expected["record_errors"] = [[index, without_window(text)] for index, text in expected["record_errors"]]

        actual = refusal(case)

        assert expected == actual, case["name"]


@of_each_group(is_refused=False)
def test_accepted_and_stored_as_kafka_stores_it(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        stored = bytes.fromhex(case["stored"])

        sent, validated = validate(case, walks_records=True)

        batch = sent[: validated.header.length_bytes] if validated.rewritten is None else validated.rewritten
        assign_offset_and_epoch(
            batch, read_header(batch), case["answer"]["base_offset"], read_header(stored).partition_leader_epoch
        )
        assert case["answer"]["log_append_time_ms"] == validated.log_append_time_ms, case["name"]
        assert is_crc_valid(batch, 0, read_header(batch)), case["name"]
        if validated.rewritten is None:
            assert stored == batch, case["name"]
        else:
            # Two libraries compress to other bytes: the records and all of the header but length and CRC are the same.
            expected, actual = read_header(stored), read_header(batch)
            expected.length_bytes, expected.crc = actual.length_bytes, actual.crc

            assert expected == actual, case["name"]
            assert list(read_records(stored)) == list(read_records(batch)), case["name"]


@pytest.mark.parametrize("name", DIFFERENCES)
def test_every_deliberate_difference_is_still_one(name: str) -> None:
    (case,) = [case for case in CASES if case["name"] == name]
    try:
        validate(case, walks_records=True)
        code = 0
    except InvalidBatchError as error:
        code = error.code

    assert code != case["answer"]["code"]


@of_each_group()
def test_headers_mode_refuses_nothing_that_kafka_takes_and_never_answers_otherwise(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        code = 0
        try:
            validate(case, walks_records=False)
        except InvalidBatchError as error:
            code = error.code

        assert code in (0, case["answer"]["code"]), case["name"]
