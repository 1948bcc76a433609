"""An append stage of one's own, as a plugin in one file: it masks a field of records before they are kept.

Values that are JSON objects lose what the topic's key `odradek.mask.field` names: card numbers, addresses. Whatever
else a producer sends is kept as it is. In `odradek.toml`:

    [plugins]
    enable = ["*", "examples.masking_stage"]

    [topics.payments]
    "odradek.mask.field" = "card"

A stage works where the broker's clients wait: a batch is unpacked and packed again, some microseconds a record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from odradek.kernel.api import (
    AppendStage,
    AppendStageFactory,
    BatchBuilder,
    ConfigKey,
    ConfigType,
    Part,
    Record,
    Scope,
    TopicIdPartition,
    hookimpl,
    read_batch,
    read_header,
)

FIELD = "odradek.mask.field"
MASK = "***"


class MaskingStage:
    """Puts `***` in the place of one field of every value."""

    def __init__(self, field: str) -> None:
        self.field = field

    def accept(self, batch: memoryview) -> memoryview | bytes:
        """Return the batch as it came when nothing is to be masked, else a new one like it."""
        header = read_header(batch)
        records = list(read_batch(batch, 0, header))
        masked = [self.masked(record) for record in records]
        if masked == records:
            return batch
        builder = BatchBuilder.like(header)  # the producer, its sequence, the codec: all but the records
        builder.extend(masked)
        return bytes(builder.build())

    def masked(self, record: Record) -> Record:
        """Return the record, masked when it has the field."""
        try:
            value = json.loads(record.value or b"")
        except ValueError:
            return record
        if not isinstance(value, dict) or self.field not in value:
            return record
        return record._replace(value=json.dumps({**value, self.field: MASK}).encode())


def make_stage(partition: TopicIdPartition, settings: Mapping[str, object]) -> AppendStage | None:
    """Make the stage of a partition; None, which costs nothing, when its topic masks nothing."""
    field = settings[FIELD]
    return MaskingStage(str(field)) if field else None


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Offer the topic key."""
    doc = "The field of JSON values that is masked; empty for none."
    return [ConfigKey(FIELD, ConfigType.STRING, "", scope=Scope.TOPIC, part=Part.PLUGINS, doc=doc)]


@hookimpl
def odradek_append_stages() -> Mapping[str, AppendStageFactory]:
    """Offer the stage."""
    return {"masking": make_stage}
