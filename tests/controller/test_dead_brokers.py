"""Brokers that may be dead: each is looked at by itself, one look at a time, whatever the others are like."""

from __future__ import annotations

import errno
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NoReturn, cast

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.controller.broker_sessions import BrokerSessions
from odradek.kernel.controller.controller import Controller
from odradek.kernel.controller.dead_brokers import PAUSES_S, DeadBrokers
from odradek.kernel.controller.metadata_log import MetadataLog
from odradek.kernel.controller.session_watch import SessionWatch
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.clock import TrioClock
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


class OpenNetwork:
    """Brokers listen again: who is looked at lives. Notes how many are connected to at once, and how often."""

    def __init__(self) -> None:
        self.now = self.most = self.count = 0

    async def resolve(self, _host: str, port: int) -> Sequence[Address]:
        return [Address(0, ("127.0.0.1", port))]

    async def connect(self, _address: Address, **_sizes: int) -> Any:
        self.now, self.count = self.now + 1, self.count + 1
        self.most = max(self.most, self.now)
        await trio.sleep(0.1)
        self.now -= 1
        return MemoryStream()


class BusyNetwork(StrangeNetwork):
    """Has no time at first: nothing is answered, or not reached; then refuses."""

    def __init__(self) -> None:
        self.count = 0

    async def connect(self, _address: Address, **_sizes: int) -> NoReturn:
        self.count += 1
        if self.count == 1:
            await trio.sleep_forever()
        if self.count == 2:
            raise OSError(errno.ENETUNREACH, "not now")
        raise ConnectionRefusedError


class MemoryStream(trio.abc.AsyncResource):
    """A connection that is closed at once."""

    async def aclose(self) -> None:
        """Close it."""


def suspicious(driven: DrivenController, network: object) -> DeadBrokers:
    """Return what looks at brokers 2 and 3, which have sessions."""
    sessions = driven.rules.sessions
    sessions.begin(driven.image.brokers[broker_id] for broker_id in (STRANGE, DEAD))
    metadata = cast("MetadataLog", Metadata(driven))
    return DeadBrokers(metadata, sessions, driven.rules.config, cast("Network", network))


def on_virtual_time(dead: DeadBrokers, main: Callable[[], Awaitable[None]]) -> None:
    """Run a test beside the looks."""

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(dead.run)
            await main()
            nursery.cancel_scope.cancel()

    trio.run(both, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_broker_is_looked_at_once_at_a_time_however_often_it_is_suspected() -> None:
    driven, network = DrivenController(brokers=3), OpenNetwork()
    dead = suspicious(driven, network)

    async def main() -> None:
        for _ in range(1000):
            dead.suspect(DEAD, driven.epoch_of(DEAD))
        dead.suspect(STRANGE, driven.epoch_of(STRANGE))
        dead.suspect(DEAD, driven.epoch_of(DEAD) - 1)
        dead.suspect(77, 0)
        await trio.sleep(0.05)
        assert network.now == 2, "one does not wait for the other"
        await trio.sleep(30)

    on_virtual_time(dead, main)

    assert (network.most, network.count) == (2, 2 * len(PAUSES_S)), (
        "who is not there, or is another one, is not looked at"
    )


def test_a_machine_that_does_not_answer_at_first_is_asked_again() -> None:
    driven, network = DrivenController(brokers=3), BusyNetwork()
    dead = suspicious(driven, network)

    async def main() -> None:
        dead.suspect(DEAD, driven.epoch_of(DEAD))
        await trio.sleep(30)

    on_virtual_time(dead, main)

    assert driven.image.brokers[DEAD].is_fenced
    assert network.count == 3


def test_a_broker_that_is_suspected_again_while_it_is_looked_at_is_looked_at_again() -> None:
    driven, network = DrivenController(brokers=3), OpenNetwork()
    dead = suspicious(driven, network)

    async def main() -> None:
        epoch = driven.epoch_of(DEAD)
        dead.suspect(DEAD, epoch)
        await trio.sleep(0.05)
        driven.rules.sessions.touch(DEAD, epoch)
        dead.suspect(DEAD, epoch)
        await trio.sleep(30)

    on_virtual_time(dead, main)

    assert (network.most, network.count) == (1, 2 * len(PAUSES_S))


def test_a_host_that_cannot_be_looked_at_is_logged_and_the_others_are_looked_at(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driven = DrivenController(brokers=3)
    dead = suspicious(driven, StrangeNetwork())

    async def main() -> None:
        for broker_id in (STRANGE, DEAD):
            dead.suspect(broker_id, driven.epoch_of(broker_id))
        await trio.sleep(10)

    on_virtual_time(dead, main)

    assert [driven.image.brokers[broker_id].is_fenced for broker_id in (STRANGE, DEAD)] == [False, True]
    assert f"broker {STRANGE} could not be looked at" in caplog.text


class Former(Metadata):
    """The metadata log of a controller that another one has followed, or whose disk refuses."""

    def __init__(self, driven: DrivenController, code: ErrorCode) -> None:
        super().__init__(driven)
        self._code = code

    async def submit(self, operation: Callable[[Controller, int], Any]) -> Any:
        raise KafkaError(self._code, "it is not taken")


@pytest.mark.parametrize("kind", [DeadBrokers, SessionWatch])
@pytest.mark.parametrize(
    ("code", "level"), [(ErrorCode.NOT_CONTROLLER, logging.INFO), (ErrorCode.KAFKA_STORAGE_ERROR, logging.ERROR)]
)
def test_whom_the_next_controller_will_fence_is_no_error_of_the_one_before(
    kind: type, code: ErrorCode, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    driven = DrivenController(brokers=3)
    metadata, network = cast("MetadataLog", Former(driven, code)), cast("Network", StrangeNetwork())

    async def main() -> None:
        clock = TrioClock()
        rules = attrs.evolve(driven.rules, sessions=BrokerSessions(monotonic_ms=clock.monotonic_ms))
        dead = DeadBrokers(metadata, rules.sessions, rules.config, network)
        watch = dead if kind is DeadBrokers else SessionWatch(metadata, rules, clock)
        rules.sessions.begin([driven.image.brokers[DEAD]])
        async with trio.open_nursery() as nursery:
            await nursery.start(watch.run)
            dead.suspect(DEAD, driven.epoch_of(DEAD))
            await trio.sleep(9.1)  # a session has 9
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    assert {record.levelno for record in caplog.records if "could not be fenced" in record.message} == {level}
