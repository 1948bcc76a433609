"""Pure core: from options and what the brokers say to the ranges that tasks read.

| step | module |
| --- | --- |
| which partitions a query reads | `assign` here |
| where it begins and ends | `positions` |
| where a micro-batch ends | `rate_limit` |
| what of it is still there | `data_loss` |
| which filters leave something to read | `filters` |
| how it is cut into tasks | `splitting` |

Each takes what the brokers said as an argument and gives a value; the readers on the driver ask, and call them in this
order.

*Source:* Spark's Kafka integration guide; what its connector 4.2.0 does was seen by running it.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import TypeAlias

import attrs

from odradek.kernel.types import INTERNAL_TOPICS

from ..errors import AssignmentError
from ..ranges import TopicPartition

__all__ = ["Assigned", "Pattern", "Subscription", "Topics", "assign", "topics_to_describe"]

SIMILAR_MAX = 3
"""How many similar names a message tells."""


@attrs.frozen
class Topics:
    """`subscribe`: topics by their names, all partitions."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"Subscribe[{', '.join(self.names)}]"


@attrs.frozen
class Pattern:
    """`subscribePattern`: every topic in whose name the expression is found, but Kafka's own."""

    text: str

    def __str__(self) -> str:
        return f"SubscribePattern[{self.text}]"


@attrs.frozen
class Assigned:
    """`assign`: these partitions and no others."""

    partitions: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"Assign[{', '.join(str(one) for one in self.partitions)}]"


Subscription: TypeAlias = Topics | Pattern | Assigned


def topics_to_describe(subscription: Subscription) -> tuple[str, ...] | None:
    """Return the topics to ask the brokers about; None for all there are."""
    if isinstance(subscription, Topics):
        return subscription.names
    if isinstance(subscription, Assigned):
        return tuple(sorted({one.topic for one in subscription.partitions}))
    return None


def assign(
    subscription: Subscription,
    found: Mapping[str, Collection[int]],
    *,
    others: Collection[str] = (),
    may_lack: Collection[str] = (),
) -> tuple[TopicPartition, ...]:
    """Return the partitions of a query, in order; none where a pattern finds no topic.

    Args:
        subscription: As the options say.
        found: Topics to the numbers of their partitions: of all topics for a pattern, else of those asked for.
        others: Names of other topics, to tell similar ones in an error; may be empty.
        may_lack: Topics that may be missing: a stream has read them, and they were deleted since; what is lost by that
            is for `data_loss`.

    Raises:
        AssignmentError: A topic or a partition is not there.
    """
    if isinstance(subscription, Assigned):
        wanted = [one for one in subscription.partitions if one.topic not in may_lack]
        _check_topics(sorted({one.topic for one in wanted}), found, others)
        _check_partitions(wanted, found)
        return tuple(sorted(one for one in subscription.partitions if one.partition in found.get(one.topic, ())))
    if isinstance(subscription, Pattern):
        from ..options.topic_pattern import compile_pattern  # its own expressions take long to compile

        pattern = compile_pattern(subscription.text)
        names = [name for name in found if name not in INTERNAL_TOPICS and pattern.search(name)]
    else:
        names = list(subscription.names)
        _check_topics([name for name in names if name not in may_lack], found, others)
    return tuple(sorted(TopicPartition(name, number) for name in names for number in found.get(name, ())))


def _check_topics(names: Collection[str], found: Mapping[str, Collection[int]], others: Collection[str]) -> None:
    missing = [name for name in names if name not in found]
    if not missing:
        return
    known = {*found, *others} - INTERNAL_TOPICS
    texts = []
    for name in missing:
        similar = difflib.get_close_matches(name, sorted(known), n=SIMILAR_MAX, cutoff=0.6)
        texts.append(f"'{name}'" + (f" (similar: {', '.join(similar)})" if similar else ""))
    raise AssignmentError(
        f"no such topic: {', '.join(texts)}. Reading creates no topics: create it, or correct 'subscribe' or 'assign'"
    )


def _check_partitions(partitions: Collection[TopicPartition], found: Mapping[str, Collection[int]]) -> None:
    missing = [one for one in partitions if one.partition not in found[one.topic]]
    if missing:
        counts = ", ".join(f"'{topic}' has {len(found[topic])}" for topic in sorted({one.topic for one in missing}))
        raise AssignmentError(
            f"option 'assign': no such partition: {', '.join(str(one) for one in missing)}; {counts}, counted from 0"
        )
