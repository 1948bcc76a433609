"""Long requests: answered in pieces, in their order, a few at a time, with everybody else in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.api_handler import PENDING
from odradek.kernel.contracts.pieces import ListPieces
from odradek.kernel.dispatch.long_requests import LONG_REQUESTS_MAX
from odradek.kernel.dispatch.router import TASKS_MAX, Router
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.wire.messages.api_10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.kernel.wire.messages.api_42_delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.kernel.wire.messages.api_52_vote import PartitionData, TopicData, VoteRequest, VoteResponse

from .memory_client import MemoryClient

MANY = [f"key {number}" for number in range(1000)]


class Finder:
    """Answers FindCoordinator; notes how many keys each piece had."""

    api_key = 10
    pieces = ListPieces("coordinator_keys", answers=["coordinators"], items_max=100)

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.waiting: list[Callable[[], None]] = []
        self.is_slow = False
        self.refused = ""

    def handle(self, request: FindCoordinatorRequest, context: Any) -> Any:
        self.sizes.append(len(request.coordinator_keys))
        if self.refused in request.coordinator_keys:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "not this one")
        answer = FindCoordinatorResponse(
            coordinators=[Coordinator(key=key, host="h", error_message="") for key in request.coordinator_keys]
        )
        if self.is_slow:
            self.waiting.append(lambda: context.reply(answer))
            return PENDING
        return answer

    def error_response(self, request: FindCoordinatorRequest, context: Any, code: ErrorCode, detail: str) -> Any:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, host="", error_code=code, error_message="") for key in request.coordinator_keys
            ]
        )


class Beater:
    api_key = 12

    def handle(self, request: HeartbeatRequest, context: Any) -> Any:
        return HeartbeatResponse()

    def error_response(self, request: HeartbeatRequest, context: Any, code: ErrorCode, detail: str) -> Any:
        return HeartbeatResponse(error_code=code)


class Holder:
    """Answers DeleteGroups in pieces, as tasks; while `holds` none of them ends, nor does any wait aside."""

    api_key = 42
    pieces = ListPieces("groups_names", answers=["results"], items_max=500)

    def __init__(self) -> None:
        self.begun = 0
        self.holds = True
        self.waits_aside = False

    async def handle_async(self, request: DeleteGroupsRequest, context: Any) -> Any:
        self.begun += 1
        if self.waits_aside:
            await context.wait_aside(trio.sleep_forever)
        if self.holds:
            await trio.sleep_forever()
        return DeleteGroupsResponse()

    def error_response(self, request: DeleteGroupsRequest, context: Any, code: ErrorCode, detail: str) -> Any:
        return DeleteGroupsResponse()


class Voter:
    """Answers Vote, for which others wait to be led."""

    api_key = 52
    waits_for_nobody = True

    async def handle_async(self, request: VoteRequest, context: Any) -> Any:
        return VoteResponse()

    def error_response(self, request: VoteRequest, context: Any, code: ErrorCode, detail: str) -> Any:
        return VoteResponse(error_code=code)


class Giver:
    """Answers InitProducerId as a task, which is short."""

    api_key = 22

    async def handle_async(self, request: InitProducerIdRequest, context: Any) -> Any:
        return InitProducerIdResponse()

    def error_response(self, request: InitProducerIdRequest, context: Any, code: ErrorCode, detail: str) -> Any:
        return InitProducerIdResponse(error_code=code)


VOTES = VoteRequest(
    topics=[TopicData(topic_name="t", partitions=[PartitionData(partition_index=index) for index in range(300)])]
)


def delete() -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=MANY)


def find(keys: list[str] = MANY) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=0, coordinator_keys=keys)


class Scene:
    """A router that runs, its finder, and clients."""

    def __init__(self) -> None:
        self.finder = Finder()
        self.router = Router(timer=lambda: 0.0, turn_enders=(), on_connection_closed=lambda connection: None)
        self.router.add(self.finder)
        self.holder = Holder()
        for handler in (Beater(), self.holder, Voter(), Giver()):
            self.router.add(handler)
        self.client = MemoryClient(self.router)

    def clients(self, count: int) -> list[MemoryClient]:
        return [MemoryClient(self.router) for _ in range(count)]

    async def leave(self, clients: list[MemoryClient]) -> None:
        for client in clients:
            client.leave()
        await settle()
        assert not any(client._memory.kept_bytes for client in clients)


def play(scenario: Callable[[Scene], Any]) -> None:
    async def main() -> None:
        scene = Scene()
        async with trio.open_nursery() as nursery:
            await nursery.start(scene.router.run)
            await scenario(scene)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


def test_a_long_request_is_answered_in_pieces() -> None:
    async def scenario(scene: Scene) -> None:
        scene.client.send(find(), 4)
        assert not scene.finder.sizes, "nothing of it is done in the turn in which it came"
        await settle()
        (answer,) = scene.client.received()

        assert isinstance(answer, FindCoordinatorResponse)
        assert [found.key for found in answer.coordinators] == MANY
        assert scene.finder.sizes == [100] * 10

    play(scenario)


def test_a_short_request_is_answered_at_once() -> None:
    async def scenario(scene: Scene) -> None:
        scene.client.send(find(["one"]), 4)

        assert len(scene.client.received()) == 1

    play(scenario)


def test_others_come_between_two_pieces() -> None:
    async def scenario(scene: Scene) -> None:
        other = MemoryClient(scene.router)
        scene.client.send(find(), 4)
        answered_after: list[int] = []
        while len(scene.finder.sizes) < 10:
            other.send(HeartbeatRequest(), 4)
            assert len(other.received()) == 1
            answered_after.append(len(scene.finder.sizes))
            await trio.lowlevel.checkpoint()

        assert set(answered_after) == set(range(10)), "one piece at most between two looks at the sockets"

    play(scenario)


def test_many_long_requests_share_one_slice_of_each_round() -> None:
    async def scenario(scene: Scene) -> None:
        clients = [MemoryClient(scene.router) for _ in range(5)]
        for client in clients:
            client.send(find(), 4)
        done: list[int] = []
        while len(scene.finder.sizes) < 50:
            await trio.lowlevel.checkpoint()
            done.append(len(scene.finder.sizes))

        assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(done))

    play(scenario)


def test_what_the_connection_asks_next_waits_for_its_long_request() -> None:
    async def scenario(scene: Scene) -> None:
        scene.client.send(find(), 4)
        scene.client.send(HeartbeatRequest(), 4)
        assert not scene.client.received()
        await settle()
        answers = scene.client.received()
        scene.client.connection.process(scene.router)
        answers += scene.client.received()

        assert [type(answer) for answer in answers] == [FindCoordinatorResponse, HeartbeatResponse]

    play(scenario)


def test_an_error_of_one_piece_is_the_answer_of_the_whole() -> None:
    async def scenario(scene: Scene) -> None:
        scene.finder.refused = MANY[500]
        scene.client.send(find(), 4)
        await settle()
        (answer,) = scene.client.received()

        assert isinstance(answer, FindCoordinatorResponse)
        assert {found.error_code for found in answer.coordinators} == {ErrorCode.INVALID_REQUEST}
        assert len(answer.coordinators) == len(MANY)

    play(scenario)


def test_a_piece_may_be_answered_later() -> None:
    async def scenario(scene: Scene) -> None:
        scene.finder.is_slow = True
        scene.client.send(find(), 4)
        for _ in range(10):
            await settle()
            (answer,) = scene.finder.waiting
            scene.finder.waiting.clear()
            answer()
        await settle()

        assert len(scene.client.received()) == 1

    play(scenario)


def test_those_that_wait_for_others_are_none_of_the_few_that_are_under_way() -> None:
    async def scenario(scene: Scene) -> None:
        scene.finder.is_slow = True
        for client in scene.clients(LONG_REQUESTS_MAX):
            client.send(find(), 4)
        await settle()
        scene.holder.holds = False
        scene.client.send(delete(), 2)
        await settle()

        assert len(scene.client.received()) == 1

    play(scenario)


@pytest.mark.parametrize("waits", ["for others", "aside", "for their turn"])
def test_however_many_wait_a_short_one_becomes_a_task(waits: str) -> None:
    async def scenario(scene: Scene) -> None:
        scene.finder.is_slow = True
        scene.holder.waits_aside = waits == "aside"
        for client in scene.clients(TASKS_MAX + LONG_REQUESTS_MAX):
            if waits == "for others":
                client.send(find(), 4)
            else:
                client.send(delete(), 2)
        await settle()
        scene.client.send(InitProducerIdRequest(), 4)
        await settle()

        assert len(scene.client.received()) == 1

    play(scenario)


def test_what_is_behind_nobody_is_not_behind_long_ones_when_it_is_long() -> None:
    async def scenario(scene: Scene) -> None:
        for client in scene.clients(LONG_REQUESTS_MAX + 1):
            client.send(delete(), 2)
        await settle()
        assert scene.holder.begun == LONG_REQUESTS_MAX
        scene.client.send(VOTES, 0)
        await settle()

        assert len(scene.client.received()) == 1

    play(scenario)


def test_a_client_that_goes_away_makes_room_for_others() -> None:
    async def scenario(scene: Scene) -> None:
        leaving = scene.clients(LONG_REQUESTS_MAX)
        for client in leaving:
            client.send(delete(), 2)
        await settle()
        scene.client.send(delete(), 2)
        await settle()
        assert scene.holder.begun == LONG_REQUESTS_MAX, "a few are under way at once"
        await scene.leave(leaving)

        assert scene.holder.begun == LONG_REQUESTS_MAX + 1

    play(scenario)


async def _leaves_while_it_waits_for_its_turn(scene: Scene) -> None:
    holding = scene.clients(LONG_REQUESTS_MAX)
    leaving = scene.clients(LONG_REQUESTS_MAX)
    for client in holding + leaving:
        client.send(delete(), 2)
    await settle()
    await scene.leave(leaving)
    await scene.leave(holding)


async def _leaves_while_it_is_decoded(scene: Scene) -> None:
    leaving = scene.clients(LONG_REQUESTS_MAX)
    for client in leaving:
        client.send(find(), 4)
    for _ in range(3):
        await trio.lowlevel.checkpoint()
    assert not scene.finder.sizes
    await scene.leave(leaving)


async def _leaves_while_a_piece_is_answered(scene: Scene) -> None:
    leaving = scene.clients(LONG_REQUESTS_MAX)
    for client in leaving:
        client.send(delete(), 2)
    await settle()
    await scene.leave(leaving)


async def _leaves_while_a_piece_waits_for_others(scene: Scene) -> None:
    scene.finder.is_slow = True
    leaving = scene.clients(2 * LONG_REQUESTS_MAX)
    for client in leaving:
        client.send(find(), 4)
    await settle()
    await scene.leave(leaving)


async def _leaves_while_a_piece_waits_aside(scene: Scene) -> None:
    scene.holder.waits_aside = True
    leaving = scene.clients(2 * LONG_REQUESTS_MAX)
    for client in leaving:
        client.send(delete(), 2)
    await settle()
    await scene.leave(leaving)


async def _goes_on_after_it_waited(scene: Scene) -> None:
    scene.finder.is_slow = True
    clients = scene.clients(2 * LONG_REQUESTS_MAX)
    for client in clients:
        client.send(find(), 4)
    while True:
        await settle()
        if not scene.finder.waiting:
            break
        for answer in scene.finder.waiting:
            answer()
        scene.finder.waiting.clear()
    assert all(len(client.received()) == 1 for client in clients)


async def _fails_after_it_waited(scene: Scene) -> None:
    scene.finder.is_slow = True
    scene.finder.refused = MANY[-1]
    await _goes_on_after_it_waited(scene)


@pytest.mark.parametrize(
    "happens",
    [
        _leaves_while_it_waits_for_its_turn,
        _leaves_while_it_is_decoded,
        _leaves_while_a_piece_is_answered,
        _leaves_while_a_piece_waits_for_others,
        _leaves_while_a_piece_waits_aside,
        _goes_on_after_it_waited,
        _fails_after_it_waited,
    ],
)
def test_afterwards_as_many_are_under_way_as_before(happens: Callable[[Scene], Any]) -> None:
    async def scenario(scene: Scene) -> None:
        await happens(scene)
        before = scene.holder.begun
        scene.holder.waits_aside = False
        for client in scene.clients(2 * LONG_REQUESTS_MAX):
            client.send(delete(), 2)
        await settle()

        assert scene.holder.begun - before == LONG_REQUESTS_MAX

    play(scenario)


def test_one_that_waits_for_others_counts_as_lent_memory_until_it_is_answered() -> None:
    async def scenario(scene: Scene) -> None:
        scene.finder.is_slow = True
        memory = scene.client._memory
        scene.client.send(find(), 4)
        kept_bytes = memory.kept_bytes
        await settle()
        assert memory.kept_bytes == kept_bytes > 0
        scene.client.leave()
        await settle()

        assert memory.kept_bytes == 0

    play(scenario)


@pytest.mark.parametrize("is_piece", [True, False], ids=["its pieces", "a task"])
def test_the_memory_of_one_that_waits_for_others_is_known_to_rest(is_piece: bool) -> None:
    async def scenario(scene: Scene) -> None:
        scene.finder.is_slow = scene.holder.waits_aside = True
        memory = scene.client._memory
        scene.client.send(find() if is_piece else delete(), 4 if is_piece else 2)
        assert not memory.resting_bytes, "its turn has not come"
        await settle()
        assert memory.resting_bytes == memory.kept_bytes > 0
        scene.client.leave()
        await settle()

        assert memory.resting_bytes == memory.kept_bytes == 0

    play(scenario)


def test_one_that_is_worked_on_after_it_waited_rests_no_more() -> None:
    async def scenario(scene: Scene) -> None:
        scene.finder.is_slow = True
        memory = scene.client._memory
        scene.client.send(find(), 4)
        await settle()
        scene.finder.is_slow = False
        for answer in scene.finder.waiting:
            answer()
        for _ in range(2):
            await trio.lowlevel.checkpoint()

        assert memory.kept_bytes > memory.resting_bytes == 0

    play(scenario)


def test_the_memory_of_a_frame_that_waits_counts_as_lent() -> None:
    async def scenario(scene: Scene) -> None:
        memory = scene.client._memory
        scene.client.send(find(), 4)
        assert memory.kept_bytes > sum(map(len, MANY))
        await settle()

        assert memory.kept_bytes == 0
        assert memory.has_room_again

    play(scenario)


def test_a_frame_that_waits_keeps_no_arena_from_being_used() -> None:
    async def scenario(scene: Scene) -> None:
        memory = scene.client._memory
        arena = memory.arena_view.obj
        scene.client.send(find(), 4)
        memory.next_arena()
        memory.next_arena()

        assert memory.arena_view.obj is arena

    play(scenario)


@pytest.mark.parametrize("cut", [1, 3000])
def test_a_long_request_that_ends_too_early_closes_its_connection(cut: int) -> None:
    async def scenario(scene: Scene) -> None:
        from odradek.kernel.wire.headers import encode_request

        frame = encode_request(find(), 4, 1, "test").join()[4:-cut]
        scene.client.send_bytes(len(frame).to_bytes(4, "big") + frame)
        await settle()

        assert scene.client.connection.is_finished

    play(scenario)
