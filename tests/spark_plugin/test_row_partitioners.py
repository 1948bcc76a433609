"""Hashes of whole columns are those of single keys, and turns go on from one batch of rows to the next."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.partitioners import murmur2, partition_for_key
from odradek.spark_plugin.writing.partitioners import KeyColumn, RowPartitioner, crc32_hashes, murmur2_hashes


def column(keys: list[bytes | None], *, front: int = 0) -> KeyColumn:
    """Lay keys out as Arrow does, behind some bytes of other rows."""
    lengths = np.array([len(key or b"") for key in keys], np.int64)
    starts = front + np.cumsum(lengths) - lengths
    data = np.frombuffer(b"\xa5" * front + b"".join(key or b"" for key in keys), np.uint8)
    return KeyColumn(starts, lengths, data, np.array([key is None for key in keys], bool))


@given(st.lists(st.binary(max_size=40)), st.integers(0, 5))
def test_a_columns_murmur2_is_that_of_each_key(keys: list[bytes], front: int) -> None:
    found = column(list(keys), front=front)

    assert murmur2_hashes(found.starts, found.lengths, found.data).tolist() == [murmur2(key) for key in keys]


@given(st.lists(st.binary(max_size=40)), st.integers(0, 5))
def test_a_columns_crc32_is_zlibs_of_each_key(keys: list[bytes], front: int) -> None:
    found = column(list(keys), front=front)

    assert crc32_hashes(found.starts, found.lengths, found.data).tolist() == [zlib.crc32(key) for key in keys]


@given(st.lists(st.none() | st.binary(max_size=9), min_size=1), st.integers(1, 9))
def test_rows_with_keys_go_where_java_sends_them(keys: list[bytes | None], partitions_count: int) -> None:
    chosen = RowPartitioner("murmur2", 0, 1_000_000).choose(
        "t", partitions_count, column(keys), np.full(len(keys), 10, np.int64)
    )

    with_key = [(partition, key) for partition, key in zip(chosen.tolist(), keys, strict=True) if key is not None]
    assert [partition for partition, _ in with_key] == [partition_for_key(key, partitions_count) for _, key in with_key]


def test_rows_without_keys_stay_for_a_batchs_worth_of_bytes_and_go_on_from_there() -> None:
    partitioner = RowPartitioner("murmur2", 1, 100)
    chosen = [partitioner.choose("t", 3, None, np.array([60, 60, 60], np.int64)).tolist() for _ in range(2)]

    assert chosen == [[1, 1, 2], [2, 0, 1]]


def test_rows_without_keys_among_others_take_turns_of_their_own() -> None:
    partitioner = RowPartitioner("crc32", 0, 10)
    chosen = partitioner.choose("t", 2, column([None, b"k", b"", None]), np.full(4, 10, np.int64)).tolist()

    assert [chosen[0], chosen[2], chosen[3]] == [0, 1, 0]
    assert chosen[1] == zlib.crc32(b"k") % 2


def test_a_topics_turns_are_its_own() -> None:
    partitioner = RowPartitioner("roundrobin", 2, 1)
    sizes = np.ones(3, np.int64)
    chosen = [partitioner.choose(topic, 4, None, sizes).tolist() for topic in ("a", "b", "a")]

    assert chosen == [[2, 3, 0], [2, 3, 0], [1, 2, 3]]


@pytest.mark.parametrize("name", ["murmur2", "crc32", "roundrobin"])
def test_no_rows_have_no_partitions(name: str) -> None:
    assert RowPartitioner(name, 0, 1).choose("t", 3, column([]), np.zeros(0, np.int64)).tolist() == []
