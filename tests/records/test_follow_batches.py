"""Which batches of a run follow each other, by the compiled walk and by its Python twin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records.batch import HEADER_SIZE
from odradek.kernel.records.columns import follow_batches

from .column_rows import needs_compiled

BOTH = pytest.mark.parametrize(
    "is_compiled", [pytest.param(True, marks=needs_compiled), False], ids=["compiled", "python"]
)


def header(base_offset: int, last_offset_delta: int = 0, *, size: int = HEADER_SIZE, magic: int = 2) -> bytes:
    """Return a batch that says nothing but where it stands."""
    data = bytearray(max(size, HEADER_SIZE))
    data[:8] = base_offset.to_bytes(8, "big", signed=True)
    data[8:12] = (size - 12).to_bytes(4, "big", signed=True)
    data[16] = magic
    data[23:27] = last_offset_delta.to_bytes(4, "big", signed=True)
    return bytes(data)


THREE = header(10, 4) + header(15, size=70) + header(16, 3)


@BOTH
@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (THREE, (192, 20, False)),
        (b"", (0, 10, False)),
        (THREE[:-1], (131, 16, False)),
        (header(12) + header(13), (122, 14, True)),
        (header(10) + header(12), (122, 13, True)),
        (header(10, 9), (61, 20, False)),
        (header(10, 10), (0, 10, False)),
        (header(20), (0, 10, False)),
        (header(9, 5), (0, 10, False)),
        (header(10) + header(10), (61, 11, False)),
        (header(10) + header(12, -1), (61, 11, False)),
        (header(10) + header(11, magic=1), (61, 11, False)),
        (header(10) + header(11, size=60), (61, 11, False)),
        (header(10) + header(11, size=-5), (61, 11, False)),
        (header(10) + header(2**63 - 1, 2**31 - 1), (61, 11, False)),
        (header(10) + header(-(2**63)), (61, 11, False)),
    ],
    ids=[
        "three",
        "nothing",
        "the last cut off",
        "a gap before",
        "a gap between",
        "up to the end",
        "beyond the end",
        "behind the end",
        "before the beginning",
        "twice",
        "a last offset below the first",
        "of another magic",
        "too short",
        "of a negative size",
        "at the greatest offset",
        "at the least offset",
    ],
)
def test_batches_are_followed_as_long_as_they_rise(
    run: bytes, expected: tuple[int, int, bool], is_compiled: bool
) -> None:
    assert follow_batches(memoryview(run), 10, 20, is_compiled=is_compiled) == expected


@needs_compiled
@given(
    batches=st.lists(
        st.builds(
            header,
            st.integers(0, 30) | st.sampled_from([-1, 2**63 - 1]),
            st.integers(-1, 5),
            size=st.sampled_from([60, 61, 62, 90]),
            magic=st.sampled_from([2] * 9 + [1]),
        ),
        max_size=6,
    ),
    cut=st.integers(0, 62),
    next_offset=st.integers(0, 10),
    end_offset=st.integers(0, 40) | st.just(2**63 - 1),
)
def test_twins_follow_the_same_batches(batches: list[bytes], cut: int, next_offset: int, end_offset: int) -> None:
    data = b"".join(batches)
    run = data[: max(0, len(data) - cut)]

    assert follow_batches(run, next_offset, end_offset) == follow_batches(
        run, next_offset, end_offset, is_compiled=False
    )


@given(data=st.binary(max_size=200), next_offset=st.integers(0, 10))
@needs_compiled
def test_twins_agree_on_any_bytes(data: bytes, next_offset: int) -> None:
    assert follow_batches(data, next_offset, 2**63 - 1) == follow_batches(
        data, next_offset, 2**63 - 1, is_compiled=False
    )
