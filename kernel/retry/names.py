"""Pure core: what the two topics of a group's failed records are called.

    TOPIC.GROUP.retry    TOPIC.GROUP.dlq

A group may be called anything, a topic may not. What does not fit the alphabet is escaped as `-`, what is too long is
cut, and either way a hash of the whole name follows, so that two groups do not share topics. `a.b` of group `c` and `a`
of group `b.c` still would: whoever makes the topics refuses the second (`odradek.retry.topic` says whose they are).

.. versionadded:: 0.1
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

TOPIC_NAME_LENGTH_MAX: Final = 249
RETRY_SUFFIX: Final = ".retry"
DEAD_SUFFIX: Final = ".dlq"
_HASH_DIGITS: Final = 16
ESCAPED: Final = re.compile(r"-[0-9a-f]{16}\Z")
"""How what stands before a suffix ends where the group's name is not in it as it is."""
_OUTSIDE: Final = re.compile(r"[^a-zA-Z0-9._-]")


class RetryTopics(NamedTuple):
    """The names of a group's two topics: where it produces what it failed, and where dead letters are."""

    retry: str
    dead: str


def retry_topics(topic: str, group: str) -> RetryTopics:
    """Return what the topics of a group's failed records are called.

    Args:
        topic: What the group reads.
        group: Its id; not empty.
    """
    stem = f"{topic}.{_OUTSIDE.sub('-', group)}"
    length_max = TOPIC_NAME_LENGTH_MAX - len(RETRY_SUFFIX)
    if len(stem) > length_max or not stem.endswith(f".{group}"):
        whole = hashlib.blake2b(f"{topic}\0{group}".encode(), digest_size=_HASH_DIGITS // 2).hexdigest()
        stem = f"{stem[: length_max - _HASH_DIGITS - 1]}-{whole}"
    return RetryTopics(stem + RETRY_SUFFIX, stem + DEAD_SUFFIX)


def may_be_retry_topic(name: str, group: str) -> bool:
    """Return whether a name is that of a group's retry topic, of whichever topic; True of a cut one that may be.

    Args:
        name: A topic's.
        group: Its id; not empty.
    """
    if not name.endswith(RETRY_SUFFIX):
        return False
    stem = name.removesuffix(RETRY_SUFFIX)
    if len(name) == TOPIC_NAME_LENGTH_MAX and ESCAPED.search(stem):
        return True
    return any(
        retry_topics(stem[:dot], group).retry == name for dot, letter in enumerate(stem) if letter == "." and dot
    )
