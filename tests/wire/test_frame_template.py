"""Frames filled in by template are those that the codec would have written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.wire.frame_template import RECORDS_MARK, FrameTemplate, RecordsFrameTemplate, mark
from odradek.kernel.wire.headers import encode_response
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from odradek.kernel.wire.messages.api_01_fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tests.wire.random_messages import versions_of

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
NUMBERS = st.tuples(INT64, INT64, INT64)
CORRELATION_IDS = st.integers(-(1 << 31), (1 << 31) - 1)


class Slice(bytes):
    """Bytes that the codec is to take for something in a file."""

    @property
    def size_bytes(self) -> int:
        return len(self)


PIECES = st.binary(max_size=70).map(Slice) | st.binary(max_size=40_000)
RECORDS = PIECES | st.lists(PIECES, max_size=3)


def fetched(numbers: tuple[int, int, int], records: Any) -> FetchResponse:
    part = PartitionData(
        partition_index=3,
        high_watermark=numbers[0],
        last_stable_offset=numbers[1],
        log_start_offset=numbers[2],
        records=records,
    )
    return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=[part])])


@pytest.mark.parametrize("version", versions_of(FetchResponse))
@given(correlation_id=CORRELATION_IDS, numbers=NUMBERS, records=RECORDS)
def test_a_frame_with_records_is_the_codecs(
    version: int, correlation_id: int, numbers: tuple[int, int, int], records: Any
) -> None:
    marks = (mark(0), mark(1), mark(2))
    template = RecordsFrameTemplate(fetched(marks, RECORDS_MARK), version)
    expected = encode_response(fetched(numbers, records), version, correlation_id).join()

    parts = template.fill(correlation_id, numbers, records)

    assert type(parts[0]) is bytes
    assert b"".join(parts) == expected  # type: ignore[arg-type] # a slice is bytes here
    for piece in records if isinstance(records, list) else [records]:
        assert not piece or not isinstance(piece, Slice) or any(part is piece for part in parts), "never copied"


@pytest.mark.parametrize("version", versions_of(ProduceResponse))
@given(correlation_id=CORRELATION_IDS, numbers=NUMBERS)
def test_a_frame_of_numbers_is_the_codecs(version: int, correlation_id: int, numbers: tuple[int, int, int]) -> None:
    def produced(numbers: tuple[int, int, int]) -> ProduceResponse:
        part = PartitionProduceResponse(
            index=3, base_offset=numbers[0], log_append_time_ms=numbers[1], log_start_offset=numbers[2]
        )
        return ProduceResponse(responses=[TopicProduceResponse(name="orders", partition_responses=[part])])

    template = FrameTemplate(produced((mark(0), mark(1), mark(2))), version)
    expected = encode_response(produced(numbers), version, correlation_id).join()

    assert template.fill(correlation_id, numbers) == expected


def test_numbers_that_do_not_stand_together_are_no_template() -> None:
    with pytest.raises(AssertionError, match="one behind the other"):
        FrameTemplate(fetched((mark(1), mark(0), mark(2)), b""), 11)
    with pytest.raises(AssertionError, match="there are records"):
        RecordsFrameTemplate(fetched((mark(0), mark(1), mark(2)), Slice(b"x" * 600)), 11)
