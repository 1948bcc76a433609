"""Pure core: what a user says of reads past the brokers: `readFrom`, `dataDir`, `tieredStore`.

| option | |
| --- | --- |
| `readFrom` | `auto` (default), `broker`, `segments` |
| `dataDir` | log directories of the brokers on this machine, separated by commas |
| `tieredStore` | the URL of the bucket, as `odradek.tiered.store` has it |
| `tieredStore.<name>` | as `odradek.tiered.store.<name>`: `region`, `endpoint`, `access.key.id`, ... |

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

READ_FROM: Final = "readFrom"
DATA_DIR: Final = "dataDir"
TIERED_STORE: Final = "tieredStore"

AUTO: Final = "auto"
BROKER: Final = "broker"
SEGMENTS: Final = "segments"
_CHOICES: Final = (AUTO, BROKER, SEGMENTS)

STORE_OPTIONS: Final = (
    "timeout.ms",
    "connect.timeout.ms",
    "access.key.id",
    "secret.access.key",
    "session.token",
    "endpoint",
    "region",
    "allow.http",
    "account.name",
    "account.key",
    "service.account",
)
"""What may follow `tieredStore.`: the tier's own keys."""

GET_BYTES: Final = 8 << 20
"""How much one request gets of an object."""


@attrs.frozen
class DirectSettings:
    """Where to read past the brokers. Small, and may be sent to a task.

    Attributes:
        is_required: Whether an offset that is in no file and no object is an error: `readFrom=segments`.
        data_dirs: Log directories, absolute.
        store_url: The bucket; empty for none.
        store_options: How to reach it, by the names of `STORE_OPTIONS`; may hold secrets.
        get_bytes: How much one request gets of an object.
    """

    is_required: bool = False
    data_dirs: tuple[str, ...] = ()
    store_url: str = ""
    store_options: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    get_bytes: int = GET_BYTES


def direct_settings(options: Mapping[str, str]) -> DirectSettings | None:
    """Return where to read past the brokers; None when nothing is.

    Args:
        options: The user's, their keys in any case.

    Raises:
        OptionError: A value is none of those allowed, or options contradict each other.
    """
    given = {name.lower(): value.strip() for name, value in options.items()}
    read_from = given.get(READ_FROM.lower(), AUTO).lower()
    if read_from not in _CHOICES:
        raise OptionError(READ_FROM, f"{READ_FROM} is {read_from!r}: it has to be one of {', '.join(_CHOICES)}")
    data_dirs = tuple(part.strip() for part in given.get(DATA_DIR.lower(), "").split(",") if part.strip())
    relative = [path for path in data_dirs if not path.startswith("/") and path[1:2] != ":"]
    if relative:
        raise OptionError(
            DATA_DIR, f"{DATA_DIR} names {relative[0]!r}: tasks run elsewhere, so a path has to be absolute"
        )
    store_url = given.get(TIERED_STORE.lower(), "")
    prefix = f"{TIERED_STORE.lower()}."
    store_options = {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}
    unknown = sorted(store_options.keys() - set(STORE_OPTIONS))
    if unknown:
        known = ", ".join(f"{TIERED_STORE}.{name}" for name in STORE_OPTIONS)
        raise OptionError(TIERED_STORE, f"{TIERED_STORE}.{unknown[0]} is not known: there are {known}")
    if store_options and not store_url:
        raise OptionError(TIERED_STORE, f"{TIERED_STORE}.{min(store_options)} is set, and {TIERED_STORE} is not")
    if read_from == BROKER:
        return None
    if not data_dirs and not store_url:
        if read_from == SEGMENTS:
            raise OptionError(READ_FROM, f"{READ_FROM}={SEGMENTS} needs {DATA_DIR} or {TIERED_STORE}: where are they?")
        return None
    return DirectSettings(read_from == SEGMENTS, data_dirs, store_url, tuple(sorted(store_options.items())))
