"""What a worker tells of its failure: whether trying again may help, and whose bug it is."""

from __future__ import annotations

import pytest

from odradek.kernel.cleanup.workers import describe, may_pass
from odradek.kernel.errors import CorruptionError, StorageError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(28, "full"), True),
        (MemoryError(), True),
        (StorageError("database is locked"), True),
        (CorruptionError("not a batch"), False),
        (ValueError("a bug"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_may_pass_is_tried_again(error: Exception, expected: bool) -> None:
    assert may_pass(error) == expected


def test_a_bug_is_told_with_its_module_and_line() -> None:
    with pytest.raises(ZeroDivisionError) as bug:
        _ = 1 / 0
    with pytest.raises(StorageError) as foreseen:
        raise StorageError("database is locked")

    assert describe(bug.value).startswith(f"ZeroDivisionError: division by zero ({__name__}, line ")
    assert describe(foreseen.value) == "StorageError: database is locked"
    assert describe(MemoryError()) == "MemoryError"
