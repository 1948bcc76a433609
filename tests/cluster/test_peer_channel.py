"""A channel that is to go elsewhere: late answers are taken for a moment, and nobody waits behind what hangs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from odradek.kernel.cluster.peer_channel import LATE_ANSWERS_S, PeerChannel
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsRequest
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World

from .fake_controllers import Controllers, address_of
from .simulated import CONNECTION

T = TypeVar("T")
ASK = AllocateProducerIdsRequest(broker_id=9, broker_epoch=1)


class Channel(Controllers):
    """A channel to one of three controllers, of which a test says which.

    Attributes:
        wanted: Which.
    """

    def __init__(self, world: World, nursery: trio.Nursery) -> None:
        super().__init__(world, nursery, {})
        self.wanted = 1
        self.channel = PeerChannel(
            "a controller",
            address=lambda: address_of(self.wanted),
            settings=CONNECTION,
            network=self.machine.network,
            random_source=self.machine.random,
        )

    async def connected_to_one_that_hangs(self) -> None:
        """Have a connection to the first, which answers nothing from now on."""
        assert await self.told() == "answered"
        self.quorum.silent = {1}

    async def told(self) -> str:
        """What becomes of a question, and when."""
        began_ms = self.elapsed_ms()
        try:
            await self.channel.request(ASK, timeout_ms=10_000)
        except ConnectionFailedError:
            return f"ended after {self.elapsed_ms() - began_ms} ms"
        return "answered"


def with_channel(main: Callable[[Channel], Awaitable[T]]) -> T:
    """Run a task in a world with three controllers and a channel."""
    world = World(Seeds(1))
    results: list[T] = []

    async def root() -> None:
        async with trio.open_nursery() as nursery:
            channel = Channel(world, nursery)
            await channel.start()
            await nursery.start(channel.channel.run)
            results.append(await main(channel))
            nursery.cancel_scope.cancel()

    run_in_world(world, root, limit_ns=60 * SECOND)
    return results[0]


async def moved_under_a_question(channel: Channel) -> list[str]:
    """Ask the first controller, which hangs, go to the second, and say what becomes of both questions."""
    told: list[str] = []

    async def ask() -> None:
        told.append(await channel.told())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.sleep(1)
        channel.wanted = 2
        channel.channel.move()
        nursery.start_soon(ask)
    return told


def test_a_question_to_a_node_that_hangs_ends_when_the_channel_has_moved_and_the_next_goes_to_the_other() -> None:
    async def main(channel: Channel) -> list[str]:
        await channel.connected_to_one_that_hangs()
        return await moved_under_a_question(channel)

    assert with_channel(main) == [f"ended after {1000 + int(LATE_ANSWERS_S * 1000)} ms", "answered"]


def test_a_channel_that_is_where_it_is_wanted_stays() -> None:
    async def main(channel: Channel) -> list[str]:
        await channel.connected_to_one_that_hangs()
        told: list[str] = []

        async def ask() -> None:
            told.append(await channel.told())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(1)
            channel.channel.move()
        return told

    assert with_channel(main) == ["ended after 10000 ms"]


def test_who_does_not_want_an_answer_any_more_lets_others_not_wait_for_it() -> None:
    async def main(channel: Channel) -> list[str]:
        await channel.connected_to_one_that_hangs()
        with trio.move_on_after(1):
            await channel.told()
        channel.quorum.silent = set()
        channel.channel.abandon()
        return [await channel.told()]

    assert with_channel(main) == ["answered"]


def test_a_connection_that_is_being_made_is_given_up_where_another_address_is_wanted() -> None:
    async def main(channel: Channel) -> tuple[list[str], int]:
        channel.network.power_off(channel.controllers[1].host.host)
        began_ms = channel.elapsed_ms()
        told = await moved_under_a_question(channel)
        return told, channel.elapsed_ms() - began_ms

    told, elapsed_ms = with_channel(main)

    assert told == ["answered", "answered"]
    assert elapsed_ms <= 1_050
