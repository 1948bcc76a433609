"""Pure core: the error codes in an answer, wherever they stand.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.wire import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

COORDINATOR_LOADS: Final = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
"""The right broker, but a moment too early."""


def codes_in(message: Message) -> Iterator[ErrorCode]:
    """Yield the error codes of an answer and of everything in it; those that say "no error" are left out."""
    for spec in message.__fields__:
        value = getattr(message, spec.name)
        if spec.name.endswith("error_code"):
            if value:
                yield error_code(value)
        elif isinstance(value, Message):
            yield from codes_in(value)
        elif isinstance(value, list) and value and isinstance(value[0], Message):
            for item in value:
                yield from codes_in(item)
