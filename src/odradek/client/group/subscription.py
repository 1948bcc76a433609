"""Pure core: what a consumer subscribes to: names, or a pattern, and the topics that match it.

.. versionadded:: 0.1
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..cluster import Cluster


@attrs.frozen
class Subscription:
    """What is subscribed to: exactly one of the attributes is set.

    Attributes:
        topics: Names.
        pattern: Matched here, against whole names, whenever the client's metadata is new.
        regex: Matched by the broker, with RE2's syntax (consumer protocol only).
    """

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    regex: str | None = None

    @classmethod
    def of(
        cls, topics: Iterable[str] | None, pattern: str | re.Pattern[str] | None, *, is_matched_by_broker: bool
    ) -> Subscription:
        """Read what a user subscribes to.

        Args:
            topics: Names, or None.
            pattern: A pattern, or None. As a text it is the broker's business where the protocol allows that.
            is_matched_by_broker: Whether it does.

        Raises:
            ValueError: Neither or both are given, or a topic is no name, or the pattern is none.
        """
        if (topics is None) == (pattern is None):
            raise ValueError("subscribe to topics, or to a pattern")
        if pattern is not None:
            if isinstance(pattern, str) and is_matched_by_broker:
                return cls(regex=pattern)
            try:
                return cls(pattern=re.compile(pattern))
            except re.error as error:
                raise ValueError(f"{pattern!r} is no pattern: {error}") from None
        assert topics is not None, "one of the two is given"
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        if not all(names):
            raise ValueError("the name of a topic is empty")
        return cls(topics=frozenset(names))

    @property
    def needs_all_topics(self) -> bool:
        """Whether the client must know all topics of the cluster."""
        return self.pattern is not None

    def resolve(self, cluster: Cluster, *, excludes_internal: bool) -> frozenset[str]:
        """Return the topics that are subscribed to, as far as they are known here."""
        if self.pattern is None:
            return self.topics
        return frozenset(
            name
            for name, info in cluster.topics.items()
            if self.pattern.fullmatch(name) and not (excludes_internal and info.is_internal)
        )
