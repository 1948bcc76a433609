"""When committed offsets expire, to the millisecond."""

from __future__ import annotations

import pytest

from odradek.kernel.api import NO_PRODUCER, MetadataChange, ProducerIdentity
from odradek.plugins.groups.offset_records import KEPT

from .driven import DrivenGroups

RETENTION_MINUTES = 5
RETENTION_MS = 300_000


def test_an_offset_is_kept_for_its_retention_and_no_longer() -> None:
    driven = DrivenGroups({"offsets.retention.minutes": RETENTION_MINUTES, "offsets.retention.check.interval.ms": 1})
    driven.commit({"t": {0: 5}})
    driven.harness.advance(RETENTION_MS - 1)
    assert driven.fetch() == {"t": {0: 5}}
    driven.harness.advance(1)

    assert driven.fetch() == {}


@pytest.mark.parametrize("producer", [NO_PRODUCER, ProducerIdentity(7, 0)], ids=["alone", "in a transaction"])
def test_an_offset_that_says_so_stays_until_its_topic_or_somebody_deletes_it(producer: ProducerIdentity) -> None:
    driven = DrivenGroups({"offsets.retention.minutes": RETENTION_MINUTES})
    driven.commit({"t": {0: 5}, "u": {0: 6}}, metadata=KEPT, producer=producer)
    if producer is not NO_PRODUCER:
        driven.harness.end_transaction(producer, is_commit=True)
    driven.commit({"t": {1: 7}}, metadata=f"not {KEPT}")
    driven.harness.advance(100 * RETENTION_MS)
    assert driven.fetch() == {"t": {0: 5}, "u": {0: 6}}
    driven.harness.reload()
    assert driven.fetch() == {"t": {0: 5}, "u": {0: 6}}

    driven.harness.run(lambda shard, _: shard.offsets.delete("g", [("u", [0])]))
    assert driven.fetch() == {"t": {0: 5}}
    change = MetadataChange(deleted_topics=(driven.broker.cluster.delete("t"),))
    driven.harness.run(lambda shard, now_ms: shard.metadata_changed(change, now_ms))
    assert driven.fetch() == {}
    driven.harness.advance(100 * RETENTION_MS)
    assert not driven.shard.context.groups
