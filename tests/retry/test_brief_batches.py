"""Which batches the append stage of retry topics takes time for: by bytes, and by records."""

from __future__ import annotations

import random

import pytest

from odradek.kernel.delay.stage import BRIEF_BYTES_MAX, BRIEF_RECORDS_MAX
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.retry.stage import RetryStage
from odradek.plugins.retry.levels import Levels

from .failed_batches import NOW_MS, OWNER, Failed, produced

STAGE = RetryStage(OWNER, Levels([1], 1), now_ms=lambda: NOW_MS, chance=random.Random(0), breaker=None, place="p")


@pytest.mark.parametrize(
    ("records", "is_brief"),
    [
        ([Failed(b"v")] * BRIEF_RECORDS_MAX, True),
        ([Failed(b"v")] * (BRIEF_RECORDS_MAX + 1), False),
        ([Failed(bytes(BRIEF_BYTES_MAX))], False),
    ],
)
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_a_batch_takes_time_by_its_records_or_its_bytes(
    records: list[Failed], is_brief: bool, codec: CompressionType
) -> None:
    batch = memoryview(produced(records, codec=codec))
    is_small = codec is CompressionType.GZIP and len(records) == 1  # so many bytes are few when they are zeros

    assert STAGE.is_brief(batch) is (is_brief or is_small)
