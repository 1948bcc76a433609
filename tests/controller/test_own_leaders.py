"""The controller's own broker hands over what it leads: that ends, whatever becomes of the controller."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from odradek.kernel.controller.own_leaders import FOLLOWED_S_MAX, hand_over

from .metadata_helpers import DrivenController


class UndecidedLog:
    """A metadata log whose quorum is gone: what is submitted is never committed."""

    def __init__(self, driven: DrivenController) -> None:
        self.image = driven.image
        self.submitted_count = 0

    async def submit(self, operation: object) -> None:
        self.submitted_count += 1
        await trio.sleep_forever()


def test_a_broker_ends_though_its_controller_decides_nothing_any_more(caplog: pytest.LogCaptureFixture) -> None:
    driven = DrivenController(brokers=2)
    metadata = UndecidedLog(driven)
    as_log: Any = metadata

    async def main() -> float:
        began = trio.current_time()
        with trio.move_on_after(100 * FOLLOWED_S_MAX):
            await hand_over(as_log, driven.rules)
        return trio.current_time() - began

    took_s = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    assert metadata.submitted_count == 1
    assert took_s == pytest.approx(FOLLOWED_S_MAX)
    assert "could not be handed over" in caplog.text
