"""Delayed records by levels: first in, first out, a delay rounded up. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

from .factory import LevelsFactory
from .settings import KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import ConfigKey, DelayQueueFactory


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Own the topic key of the levels."""
    return KEYS


@hookimpl
def odradek_delay_queues() -> Mapping[str, DelayQueueFactory]:
    """Offer `odradek.delay.queue=levels`."""
    return {"levels": LevelsFactory()}
