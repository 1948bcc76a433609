"""The stage: counts the records of a batch by its header, and refuses too many."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.kernel.api import AppendStage, ErrorCode, KafkaError, TopicIdPartition, read_header

RECORDS_MAX = "odradek.batch.limit.records"


class BatchLimit:
    """Refuses batches of more than `records_max` records."""

    def __init__(self, records_max: int) -> None:
        self.records_max = records_max

    def accept(self, batch: memoryview) -> memoryview:
        """Return the batch as it came.

        Raises:
            KafkaError: POLICY_VIOLATION, it holds too many records.
        """
        count = read_header(batch).records_count
        if count > self.records_max:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{count} records in one batch, {RECORDS_MAX} allows {self.records_max}"
            )
        return batch


def make_stage(partition: TopicIdPartition, settings: Mapping[str, object]) -> AppendStage | None:
    """Make the stage of a partition; None, which costs nothing, when its topic has no limit."""
    records_max = settings[RECORDS_MAX]
    assert isinstance(records_max, int), "the broker parses what odradek_config_keys describes"
    return BatchLimit(records_max) if records_max else None
