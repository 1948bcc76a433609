"""The example of a stage that changes records: it passes the kit, and real clients read what it made of theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from examples.masking_stage import FIELD, make_stage

from odradek.client import BlockingConsumer, BlockingProducer
from odradek.kernel.api import AppendStageFactory, BatchBuilder, CompressionType, Diverted, read_batch, read_header
from odradek.testing.contracts.append_stage import PARTITION, AppendStageContract
from odradek.testing.running_broker import running_broker

CONFIG = """
[plugins]
enable = ["*", "examples.masking_stage"]

[topics.payments]
"odradek.mask.field" = "card"
"""


class TestMasking(AppendStageContract):
    def make_factory(self) -> AppendStageFactory:
        return make_stage

    def settings_in_use(self) -> Mapping[str, object]:
        return {FIELD: "card"}

    def settings_not_in_use(self) -> Mapping[str, object]:
        return {FIELD: ""}


def accepted(batch: memoryview) -> bytes | memoryview | None:
    stage = make_stage(PARTITION, {FIELD: "card"})
    assert stage is not None
    found = stage.accept(batch)
    assert not isinstance(found, Diverted)
    return found


@pytest.mark.parametrize("codec", CompressionType)
def test_the_field_is_masked_and_all_else_of_the_batch_stays(codec: CompressionType) -> None:
    builder = BatchBuilder(
        compression=codec, producer_id=7, producer_epoch=1, base_sequence=5, is_transactional=True, base_offset=0
    )
    builder.append(b"k", b'{"card": "4111", "sum": 5}', timestamp=1_000, headers=[("trace", b"1")])
    builder.append(None, b"no JSON \xff", timestamp=1_001)
    builder.append(b"gone", None, timestamp=1_002)
    before = memoryview(builder.build())
    after = accepted(before)
    assert after is not None
    was, now = read_header(before), read_header(after)
    first, *others = read_batch(after, 0, now)

    assert (first.key, first.timestamp, first.headers) == (b"k", 1_000, (("trace", b"1"),))
    assert json.loads(first.value or b"") == {"card": "***", "sum": 5}
    assert others == list(read_batch(before, 0, was))[1:]
    told = ("attributes", "producer_id", "producer_epoch", "base_sequence", "records_count", "last_offset_delta")
    assert [getattr(now, name) for name in told] == [getattr(was, name) for name in told]


def test_a_batch_without_the_field_is_kept_as_it_came() -> None:
    builder = BatchBuilder()
    builder.append(None, b'{"sum": 5}', timestamp=0)
    batch = memoryview(builder.build())

    assert accepted(batch) is batch


def test_a_topic_that_names_the_field_keeps_masked_records_and_others_what_came(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text(CONFIG)
    with running_broker(config=config) as broker:
        settings = {"bootstrap.servers": broker.bootstrap, "auto.offset.reset": "earliest"}
        with BlockingProducer({"bootstrap.servers": broker.bootstrap, "compression.type": "zstd"}) as producer:
            for topic in ("payments", "orders"):
                producer.send(topic, b'{"card": "4111"}')
        with BlockingConsumer(settings) as consumer:
            consumer.assign_topics("payments", "orders")
            found: dict[str, bytes | None] = {}
            while len(found) < 2:
                found.update({record.topic: record.value for record in consumer.poll(timeout_ms=1_000)})

    assert found == {"payments": b'{"card": "***"}', "orders": b'{"card": "4111"}'}
