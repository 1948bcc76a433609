"""The levels keep what the kit of delay queues asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from odradek.kernel.api import DelayQueueFactory
from odradek.plugins.delay_levels.factory import LevelsFactory
from odradek.plugins.delay_levels.settings import KEYS
from odradek.testing.contracts.delay_queue import DelayQueueContract


class TestLevels(DelayQueueContract):
    record_bytes_max: ClassVar[int | None] = 8

    def make_factory(self) -> DelayQueueFactory:
        return LevelsFactory()

    def settings(self) -> Mapping[str, object]:
        return {key.name: key.default for key in KEYS}
