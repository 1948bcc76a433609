"""Pure core: which names a topic may have, and which names are too much alike.

*Source:* Kafka's `Topic.validate` and `Topic.hasCollision`; texts as Apache Kafka 4.3.1 answers them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME_LENGTH_MAX: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def is_valid_topic_name(name: str) -> bool:
    """Return whether a topic may have this name."""
    return 0 < len(name) <= NAME_LENGTH_MAX and name not in (".", "..") and _LEGAL.fullmatch(name) is not None


def check_topic_name(name: str) -> None:
    """Check a topic's name.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION, with Kafka's reason.
    """
    if is_valid_topic_name(name):
        return
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    else:
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


class Collisions:
    """Finds names that differ in nothing but dots and underscores: metric names would mix them up."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names that exist; costs a pass over them, at the first question only."""
        self._names = names
        self._alike: dict[str, str] | None = None

    def find(self, name: str) -> str | None:
        """Return an existing name that is too much like this one."""
        if "." not in name and "_" not in name:
            return None
        if self._alike is None:
            self._alike = {other.replace(".", "_"): other for other in self._names if "." in other or "_" in other}
        return self._alike.get(name.replace(".", "_"))
