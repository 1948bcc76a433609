"""Pure core: the bounds that keys of the broker set to a group's own numbers.

The bounds of `consumer.session.timeout.ms`, for instance, are `group.consumer.min.session.timeout.ms` and
`group.consumer.max.session.timeout.ms`. A group can set nothing beyond them. What it has set before they were what they
are now, or by a controller that is configured otherwise, stays set, and the bound counts.

*Source:* `GroupConfig.evaluate` of Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .keys import Scope
from .values import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .broker import BrokerConfig
    from .values import Value


class Bound(NamedTuple):
    """A bound: the broker's key, what it is set to, and whether it is the smallest value or the largest."""

    key: str
    limit: int
    is_minimum: bool


def broken_bound(config: BrokerConfig, name: str, value: Value) -> Bound | None:
    """Return the bound that a value of a group's key does not keep to, None where it keeps to all there are."""
    family, _, rest = name.partition(".")
    for end in ("min", "max"):
        bound = f"group.{family}.{end}.{rest}"
        if bound in config.registry.keys[Scope.BROKER] and isinstance(value, int):
            limit = config.get_int(bound)
            if value < limit if end == "min" else value > limit:
                return Bound(bound, limit, is_minimum=end == "min")
    return None


def beyond_bounds(config: BrokerConfig, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield a line about each of a group's own numbers, of parts that are built, in whose place a bound counts."""
    for name, text in sorted(texts.items()):
        key = config.registry.find(Scope.GROUP, name)
        if key is None or not key.part.stands:
            continue
        try:
            bound = broken_bound(config, name, key.parse(text))
        except InvalidValueError:
            continue  # nobody can set such a text: that is for whoever needs the value to tell
        if bound is not None:
            side = "below" if bound.is_minimum else "above"
            yield f"{name}={text} is {side} this broker's {bound.key}: {bound.limit} counts"
