"""What a topic's configuration means for its replicas."""

import pytest

from odradek.kernel.partitions.topic_plan import decompressed_bytes_max

MIB = 1 << 20


@pytest.mark.parametrize(
    ("max_message_bytes", "expected"),
    [(1000, 16 * MIB), (MIB, 32 * MIB), (10 * MIB, 128 * MIB), (500 * MIB, 500 * MIB)],
)
def test_a_compressed_batch_may_come_to_a_bounded_multiple_of_its_size(max_message_bytes: int, expected: int) -> None:
    assert decompressed_bytes_max(max_message_bytes) == expected
