"""When committed offsets expire, to the millisecond."""

from __future__ import annotations

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
