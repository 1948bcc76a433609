"""Keys find the partitions that Kafka's coordinators have them in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.contracts.coordinator_keys import REMEMBERED_LENGTH_MAX, coordinator_partition, java_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("DESIGNING WORKHOUSES", -(2**31)),
        ("groß", 3181691),
        ("\U0001f600", 1772899),
    ],
)
def test_the_hash_is_javas(text: str, expected: int) -> None:
    # Known values of String.hashCode; the emoji is two UTF-16 units, 0xD83D * 31 + 0xDE00.

    assert java_hash(text) == expected


def test_the_smallest_integer_has_no_positive_twin_and_becomes_zero() -> None:
    assert coordinator_partition("polygenelubricants", 50) == 0


@given(st.text(alphabet=st.characters()), st.integers(1, 1000))
def test_every_key_has_a_partition(key: str, partitions_count: int) -> None:
    assert 0 <= coordinator_partition(key, partitions_count) < partitions_count


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_the_hash_is_the_polynomial_of_the_units(key: str) -> None:
    raw = key.encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(raw[index : index + 2], "little") for index in range(0, len(raw), 2)]
    expected = sum(unit * 31 ** (len(units) - 1 - index) for index, unit in enumerate(units)) % 2**32

    assert java_hash(key) % 2**32 == expected


@pytest.mark.parametrize("length", [REMEMBERED_LENGTH_MAX, REMEMBERED_LENGTH_MAX + 1])
def test_a_key_has_the_same_partition_whether_its_hash_is_remembered_or_not(length: int) -> None:
    key = "k" * length

    assert [coordinator_partition(key, 50) for _ in range(2)] == [abs(java_hash(key)) % 50] * 2
