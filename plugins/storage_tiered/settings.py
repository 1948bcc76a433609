"""Shell: the plugin's own keys, and what the broker's keys mean for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import AtLeast, ConfigError, ConfigKey, ConfigType, Importance, Part, frozen

from .store_settings import STORE_CONFIG_KEYS, STORE_KEY

if TYPE_CHECKING:
    from odradek.kernel.api import ConfigView

CACHE_DIR_KEY: Final = "odradek.tiered.cache.dir"
CACHE_BYTES_KEY: Final = "odradek.tiered.cache.bytes"
READ_BYTES_KEY: Final = "odradek.tiered.read.bytes"
GRACE_KEY: Final = "odradek.tiered.garbage.grace.ms"
_VOTERS_KEYS: Final = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
INDEX_BYTES_KEY: Final = "remote.log.index.file.cache.total.size.bytes"

CONFIG_KEYS: Final = (
    *STORE_CONFIG_KEYS,
    ConfigKey(
        CACHE_DIR_KEY,
        ConfigType.STRING,
        None,
        part=Part.TIERED,
        doc=(
            "The folder in which records that came from the store are kept for a while; nothing in it outlives the "
            "broker. A folder beside the first data directory when it is not set."
        ),
    ),
    ConfigKey(
        CACHE_BYTES_KEY,
        ConfigType.LONG,
        1 << 30,
        validator=AtLeast(0),
        part=Part.TIERED,
        doc="How many bytes of records that came from the store are kept at hand; the least used go first.",
    ),
    ConfigKey(
        READ_BYTES_KEY,
        ConfigType.INT,
        4 << 20,
        validator=AtLeast(1 << 16),
        importance=Importance.LOW,
        part=Part.TIERED,
        doc="How many bytes one request gets from the store; a reader that goes on finds the next ones on their way.",
    ),
    ConfigKey(
        GRACE_KEY,
        ConfigType.LONG,
        3_600_000,
        validator=AtLeast(1_000),
        importance=Importance.LOW,
        part=Part.TIERED,
        doc=(
            "How old an object that no manifest names has to be before it is removed, and how often such objects are "
            "looked for; longer than any upload takes."
        ),
    ),
)
"""All keys of this plugin."""


@frozen
class TierPaths:
    """Where things lie.

    Attributes:
        store_url: The store.
        cache: The folder for runs and staged segments.
        deletions: The file with what is still to be removed from the store.
    """

    store_url: str
    cache: Path
    deletions: Path


def check_is_shared(config: ConfigView) -> None:
    """Refuse a broker of a cluster a store of its own: who leads next would not find what was sent.

    Raises:
        ConfigError: No store is named, and there is more than one broker.
    """
    if not config.get_text(STORE_KEY) and any(config.get_list(key) for key in _VOTERS_KEYS):
        raise ConfigError(
            "brokers of a cluster send to one store, and none is named", where=STORE_KEY, hint="name it for all of them"
        )


def tier_paths(config: ConfigView) -> TierPaths:
    """Return where the store and the cache are: by their keys, or beside the first data directory."""
    data_dir = Path((config.get_list("log.dirs") or (config.get_text("log.dir"),))[0]).resolve()
    beside = data_dir.with_name(data_dir.name + "-tiered")
    return TierPaths(
        store_url=config.get_text(STORE_KEY) or beside.as_uri(),
        cache=Path(config.get_text(CACHE_DIR_KEY) or data_dir.with_name(data_dir.name + "-tiered-cache")),
        deletions=data_dir / "tiered-deletions.json",
    )
