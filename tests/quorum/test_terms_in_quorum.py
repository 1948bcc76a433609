"""Terms over real elections: whoever is killed, cut off or without power, each change is there once, and all agree."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.records.control import KRaftVoters
from odradek.kernel.wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsRequest
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest
from odradek.testing.faults import PowerLoss
from tests.controller.controller_requests import create_topics, topic
from tests.controller.metadata_helpers import registration
from tests.plugins.election_quorum.nodes import directory_of, voters_of

from .term_nodes import register
from .term_world import TermController, TermQuorum, in_terms, said

BROKERS = (11, 12)
ROUNDS = 6


async def prepared(quorum: TermQuorum) -> dict[int, int]:
    """Register brokers, and return their epochs."""
    while True:
        for controller in quorum.controllers.values():
            if controller.terms is not None and controller.terms.active is not None:
                await register(controller.terms.active, *BROKERS)
                image = controller.terms.active.image
                return {each: image.brokers[each].broker_epoch for each in BROKERS}
        await trio.sleep(0.005)


class Clients:
    """What clients asked for, and what they were told.

    Attributes:
        created: Topics whose creation was answered, or found done by who had asked before in vain.
        blocks: First producer ids that were given out.
    """

    def __init__(self, quorum: TermQuorum, epochs: dict[int, int]) -> None:
        self._quorum, self._epochs = quorum, epochs
        self.created: list[str] = []
        self.blocks: list[int] = []
        self.is_over = False

    async def create(self) -> None:
        number = 0
        while not self.is_over:
            name = f"t{number}"
            response, failures = await self._quorum.ask(create_topics(topic(name, 1, 2)))
            code = error_code(response.topics[0].error_code)
            assert code is ErrorCode.NONE or (failures and code is ErrorCode.TOPIC_ALREADY_EXISTS), (name, code)
            self.created.append(name)
            number += 1
            await trio.sleep(0.03)

    async def allocate(self) -> None:
        while not self.is_over:
            request = AllocateProducerIdsRequest(broker_id=11, broker_epoch=self._epochs[11])
            response, _failures = await self._quorum.ask(request)
            self.blocks.append(response.producer_id_start)
            await trio.sleep(0.02)


async def accident(quorum: TermQuorum, source: random.Random) -> None:
    """Do something to the leader, or to another one, and mend it after a while."""
    leading = [each.node_id for each in quorum.controllers.values() if each.terms is not None and each.terms.active]
    node_id = source.choice(leading or [*quorum.controllers])
    controller = quorum.controllers[node_id]
    kind = source.choice(["kill", "power", "cut", "leave"])
    if kind == "cut":
        quorum.isolate(node_id)
        await trio.sleep(source.uniform(0.1, 4))
        quorum.cut.clear()
    elif kind == "leave" and controller.terms is not None:
        terms = controller.terms
        with trio.move_on_after(2):
            await terms.leave()
    if controller.log is not None and kind != "cut":
        controller.crash(source.choice([*PowerLoss]) if kind == "power" else None)
        await trio.sleep(source.uniform(0, 1))
        controller.start()


async def through_accidents(quorum: TermQuorum, source: random.Random) -> None:
    clients = Clients(quorum, await prepared(quorum))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clients.create)
        nursery.start_soon(clients.allocate)
        for _ in range(ROUNDS):
            await trio.sleep(source.uniform(0.05, 1.5))
            await accident(quorum, source)
        clients.is_over = True
    image = await quorum.agreed()
    (first, *others) = [said(each) for each in quorum.images.values()]

    assert not [each.failure for each in quorum.controllers.values() if each.failure is not None]
    assert all(other == first for other in others)
    assert sorted(clients.created) == sorted(image.topics_by_name)
    assert len(clients.created) > ROUNDS
    assert clients.blocks == sorted({*clients.blocks}), "no block is given out twice"
    assert image.next_producer_id > clients.blocks[-1]


@pytest.mark.parametrize("seed", range(3))
def test_changes_are_done_once_through_accidents_of_controllers(seed: int) -> None:
    in_terms(lambda quorum: through_accidents(quorum, random.Random(seed)), seed=seed)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 400))
def test_changes_are_done_once_through_many_accidents(seed: int) -> None:
    in_terms(lambda quorum: through_accidents(quorum, random.Random(seed)), seed=seed)


def test_a_voter_that_is_added_has_all_by_snapshots_which_name_who_votes() -> None:
    async def main(quorum: TermQuorum) -> None:
        await prepared(quorum)
        for number in range(20):
            await quorum.ask(create_topics(topic(f"t{number}", 1, 2)))
        added = quorum.controllers[4] = TermController(quorum, 4, KRaftVoters(voters=[]))
        added.start()
        before = await quorum.agreed()
        assert added.log is not None
        assert (added.log.start_offset > 0, len(before.topics_by_name)) == (True, 20)
        leader = await quorum.leader()
        request = AddRaftVoterRequest(voter_id=4, voter_directory_id=directory_of(4), timeout_ms=5_000)
        answer: Any = await leader.ask(-1, request)
        while answer.error_code:  # its leader has not heard yet that it has all
            await trio.sleep(0.01)
            answer = await leader.ask(-1, request)
        for number in range(20, 40):
            await quorum.ask(create_topics(topic(f"t{number}", 1, 2)))
        await quorum.agreed()
        added.crash(PowerLoss.LOST)
        await trio.sleep(1)
        added.start()
        await quorum.agreed()
        images = [said(image) for image in quorum.images.values()]
        assert added.snapshot[1] == added.log.voters == voters_of(1, 2, 3, 4)
        assert images == [images[0]] * 4
        assert len(quorum.images[4].topics_by_name) == 40

    in_terms(main)


def test_brokers_that_registered_are_known_to_the_next_controller() -> None:
    async def main(quorum: TermQuorum) -> None:
        epochs = await prepared(quorum)
        leader = await quorum.leader()
        quorum.controllers[leader.node_id].crash()
        response, _failures = await quorum.ask(create_topics(topic("t", 1, 2)))
        assert response.topics[0].error_code == 0
        for image in quorum.images.values():
            assert {each: image.brokers[each].broker_epoch for each in BROKERS} == epochs
            assert registration(11).incarnation_id == image.brokers[11].incarnation_id

    in_terms(main)
