"""Random messages of every class and version, from a seed."""

from __future__ import annotations

import random
import uuid
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, cast

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire import messages
from odradek.kernel.wire.fields import FieldSpec
from odradek.kernel.wire.message import Message

_LIMITS = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
OWN_TAGS_MIN = 10_000
"""Tagged fields from here on are ours, and no oracle knows them; who does not know one passes over it."""
_TEXTS = ["", "a", "topic-1", "größer", "日本", "x" * 126, "y" * 127, "z" * 300]


def all_messages() -> list[type[Message]]:
    """Every class that can be encoded by itself, in the order of modules."""
    found = []
    for module in iter_modules(messages.__path__):
        names = import_module(f"{messages.__name__}.{module.name}")
        own = [getattr(names, name) for name in names.__all__]
        # A module that reads messages of another one may offer these too, and functions beside them.
        found += [one for one in own if isinstance(one, type) and one.__module__ == names.__name__]
    return [one for one in found if issubclass(one, Message)]


def versions_of(cls: type[Message]) -> range:
    """Every version of a class."""
    return range(cls.__versions__.lowest, cls.__versions__.highest + 1)


def random_message(cls: type[Message], version: int, source: random.Random, items_max: int = 3) -> Any:
    """Return a message whose fields are random where the version has them, and defaults elsewhere."""
    values = {}
    for spec in cls.__fields__:
        if spec.tag >= OWN_TAGS_MIN:
            continue
        if version in spec.versions and not (spec.tag >= 0 and source.random() < 0.3):
            values[spec.name] = _value(spec, version, source, items_max)
    return cls(**values)


def _value(spec: FieldSpec, version: int, source: random.Random, items_max: int) -> Any:
    if version in spec.nullable and source.random() < 0.25:
        return None
    if spec.kind == "array":
        return [_plain(spec.item, spec, version, source, items_max) for _ in range(source.randint(0, items_max))]
    return _plain(spec.kind, spec, version, source, items_max)


def _plain(kind: str, spec: FieldSpec, version: int, source: random.Random, items_max: int) -> Any:
    if "error_code" in spec.name:
        return source.choice(list(ErrorCode))
    if kind == "int64" and spec.name.endswith(("_ms", "timestamp")):
        return source.choice([0, source.randint(0, 1 << 40)])
    if kind in _LIMITS:
        return source.choice([0, *_LIMITS[kind], source.randint(*_LIMITS[kind])])
    if kind == "bool":
        return source.random() < 0.5
    if kind == "float64":
        return source.uniform(-1e9, 1e9)
    if kind == "uuid":
        return uuid.UUID(int=source.choice([0, source.getrandbits(128)]))
    if kind == "string":
        return source.choice(_TEXTS)
    if kind == "struct":
        return random_message(cast("type[Message]", spec.struct), version, source, items_max)
    return source.randbytes(source.choice([0, 1, 20, 127, 700]))
