"""What of a log may go, by age, by size, by key, by a record's own time. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

from .compact import CompactPolicy
from .delete import DeletePolicy
from .settings import KEYS
from .ttl import TtlPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import CleanupPolicy, ConfigKey


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Own the topic keys of the policies that Kafka does not have."""
    return KEYS


@hookimpl
def odradek_cleanup_policies() -> Mapping[str, CleanupPolicy]:
    """Offer Kafka's two under their names, and `ttl`."""
    return {"delete": DeletePolicy(), "compact": CompactPolicy(), "ttl": TtlPolicy()}
