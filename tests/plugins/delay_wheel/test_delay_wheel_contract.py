"""The wheel keeps what the kit of delay queues asks."""

from __future__ import annotations

from typing import ClassVar

from odradek.kernel.api import DelayQueueFactory
from odradek.plugins.delay_wheel.factory import WheelFactory
from odradek.testing.contracts.delay_queue import DelayQueueContract


class TestWheel(DelayQueueContract):
    record_bytes_max: ClassVar[int | None] = 24

    def make_factory(self) -> DelayQueueFactory:
        return WheelFactory()
