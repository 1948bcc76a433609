"""The wheel keeps what the kit of delay queues asks."""

from __future__ import annotations

from odradek.kernel.api import DelayQueueFactory
from odradek.plugins.delay_wheel.factory import WheelFactory
from odradek.testing.contracts.delay_queue import DelayQueueContract


class TestWheel(DelayQueueContract):
    def make_factory(self) -> DelayQueueFactory:
        return WheelFactory()
