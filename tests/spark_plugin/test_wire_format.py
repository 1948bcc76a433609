"""A schema registry's five bytes: taken off where they are, and only there."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.spark_plugin.reading.wire_format import names_to_make, stripped

framed = st.builds(
    lambda number, rest: struct.pack(">bi", 0, number) + rest, st.integers(-(2**31), 2**31 - 1), st.binary()
)


def expected(value: bytes | None) -> tuple[bytes | None, int | None]:
    if value is None or len(value) < 5 or value[0]:
        return value, None
    return value[5:], struct.unpack(">i", value[1:5])[0]


@given(st.lists(st.none() | framed | st.binary(max_size=7)))
def test_values_lose_the_prefix_and_tell_the_schema(values: list[bytes | None]) -> None:
    batch = pa.record_batch({"offset": list(range(len(values))), "value": pa.array(values, pa.binary())})

    found = stripped(batch, ("schemaId", "value", "offset"))

    assert found.schema.names == ["schemaId", "value", "offset"]
    assert found.schema.field("schemaId").type == pa.int32()
    pairs = zip(found.column(1).to_pylist(), found.column(0).to_pylist(), strict=True)
    assert list(pairs) == [expected(value) for value in values]


@pytest.mark.parametrize(
    ("names", "made"), [(("schemaId",), ("value",)), (("value", "schemaId"), ("value",)), (("key",), ("key", "value"))]
)
def test_the_id_alone_needs_the_value(names: tuple[str, ...], made: tuple[str, ...]) -> None:
    assert names_to_make(names) == made
