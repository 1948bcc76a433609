"""Pure core: settings of a topic that use an append stage, for `odradek plugins check`: tried until some make it.

Nobody but its author knows which settings a stage wants. So values that the plugin's keys take are tried: all keys set
to something, then one key after the other, then some of all that go together.
"""

from __future__ import annotations

import uuid
from itertools import islice, product
from typing import TYPE_CHECKING, Final

from odradek.kernel.config.values import ConfigType
from odradek.kernel.types import TopicIdPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from odradek.kernel.config.keys import ConfigKey
    from odradek.kernel.config.values import Value
    from odradek.kernel.contracts.append_stage import AppendStageFactory

COMBINATIONS_MAX: Final = 500
"""So many settings are tried."""
_PARTITION: Final = TopicIdPartition(uuid.UUID(int=7), "orders", 0)
_TEXTS: Final = {
    ConfigType.BOOLEAN: ("true", "false"),
    **dict.fromkeys((ConfigType.INT, ConfigType.SHORT, ConfigType.LONG, ConfigType.DOUBLE), ("100", "1")),
}
_OTHER_TEXTS: Final = ("something", "1", "5s")


def settings_in_use(factory: AppendStageFactory, keys: Iterable[ConfigKey]) -> Mapping[str, object] | None:
    """Return settings of a topic that uses a stage; None where no such were found.

    Args:
        factory: Makes the stage.
        keys: The plugin's topic keys.
    """
    for settings in islice(_likely_settings(list(keys)), COMBINATIONS_MAX):
        try:
            if factory(_PARTITION, settings) is not None:
                return settings
        except Exception:  # a stranger's: it need not take what its author would never set
            continue
    return None


def _likely_settings(keys: Sequence[ConfigKey]) -> Iterator[Mapping[str, object]]:
    """Iterate over settings, the likeliest first; some come more than once."""
    values = {key.name: likely_values(key) for key in keys}
    first = {name: tried[0] for name, tried in values.items()}
    defaults = {key.name: key.default for key in keys}
    yield first
    for name, tried in values.items():
        for value in tried:
            yield {**first, name: value}
            yield {**defaults, name: value}
    for combination in product(*values.values()):
        yield dict(zip(values, combination, strict=True))


def likely_values(key: ConfigKey) -> Sequence[Value]:
    """Return values that a key takes, the likeliest to turn something on first, and its default last."""
    found = [value for value in _taken_values(key) if value != key.default]
    return (*dict.fromkeys(found), key.default)


def _taken_values(key: ConfigKey) -> Iterator[Value]:
    for text in _likely_texts(key):
        try:
            value = key.parse(text)
        except Exception:  # no value of this key, or its validator is a stranger's with a bug
            continue
        yield value


def _likely_texts(key: ConfigKey) -> Iterator[str]:
    validator = key.validator
    yield from getattr(validator, "choices", None) or ()
    yield from _TEXTS.get(key.type, _OTHER_TEXTS)
    bounds = [bound for name in ("low", "high", "special") if (bound := getattr(validator, name, None)) is not None]
    yield from map(str, (*bounds, *(bound + 1 for bound in bounds)))
