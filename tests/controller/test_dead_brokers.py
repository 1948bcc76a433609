"""Brokers that may be dead: one whose listener cannot be looked at keeps nobody else from being looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

import pytest
import trio
import trio.testing

from odradek.kernel.controller.controller import Controller
from odradek.kernel.controller.dead_brokers import DeadBrokers
from odradek.kernel.controller.metadata_log import MetadataLog
from odradek.kernel.machine.network import Address, Network
from odradek.kernel.metadata.image import MetadataImage

from .metadata_helpers import DrivenController

STRANGE, DEAD = 2, 3


class Metadata:
    """The metadata log's part of it: operations happen at once."""

    def __init__(self, driven: DrivenController) -> None:
        self._driven = driven

    @property
    def image(self) -> MetadataImage:
        return self._driven.image

    async def submit(self, operation: Callable[[Controller, int], Any]) -> Any:
        return self._driven.apply(operation(self._driven.controller, 0))


class StrangeNetwork:
    """Cannot make out where one broker listens, and is refused by all others."""

    async def resolve(self, _host: str, port: int) -> Sequence[Address]:
        if port == 9090 + STRANGE:
            raise ValueError("what nobody has thought of")
        return [Address(0, ("127.0.0.1", port))]

    async def connect(self, _address: Address, **_sizes: int) -> NoReturn:
        raise ConnectionRefusedError


def test_a_host_that_cannot_be_looked_at_is_logged_and_the_others_are_looked_at(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driven = DrivenController(brokers=3)
    sessions = driven.rules.sessions
    sessions.begin(driven.image.brokers[broker_id] for broker_id in (STRANGE, DEAD))
    dead = DeadBrokers(
        cast("MetadataLog", Metadata(driven)), sessions, driven.rules.config, cast("Network", StrangeNetwork())
    )

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(dead.run)
            for broker_id in (STRANGE, DEAD):
                dead.suspect(broker_id, driven.epoch_of(broker_id))
            await trio.testing.wait_all_tasks_blocked()
            await trio.sleep(10)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    assert [driven.image.brokers[broker_id].is_fenced for broker_id in (STRANGE, DEAD)] == [False, True]
    assert f"broker {STRANGE} could not be looked at" in caplog.text
