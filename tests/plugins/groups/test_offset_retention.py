"""Until when an offset is kept whose commit says so itself."""

from __future__ import annotations

import pytest

from odradek.plugins.groups.offset_records import NO_EXPIRY
from odradek.plugins.groups.offsets import NO_RETENTION, expires_at
from tests.plugins.groups.driven import DrivenGroups

FOR_EVER = (1 << 63) - 1


@pytest.mark.parametrize(
    ("retention_ms", "expected"),
    [(NO_RETENTION, NO_EXPIRY), (0, 5000), (1000, 6000), (-5, 4995), (FOR_EVER, FOR_EVER), (FOR_EVER - 4999, FOR_EVER)],
)
def test_a_retention_ends_at_the_end_of_all_time(retention_ms: int, expected: int) -> None:
    assert expires_at(retention_ms, 5000) == expected


def test_a_commit_that_is_kept_for_ever_is_taken() -> None:
    waiter = DrivenGroups().commit({"t": {0: 6}}, group="alone", retention_ms=FOR_EVER, version=3)

    assert waiter.error is None
    assert [code for codes in waiter.response for code in codes] == [0]
