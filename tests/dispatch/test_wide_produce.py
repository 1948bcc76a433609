"""A Produce for very many partitions: staged in slices, answered as one, with everybody else in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.transactions import Admission
from odradek.kernel.dispatch.wide_produce import AT_ONCE_MAX, PARTITIONS_PER_SLICE
from odradek.kernel.errors import ErrorCode
from odradek.kernel.partitions.staged_writes import FIRST_BATCHES_MAX
from odradek.kernel.wire.messages.api_00_produce import ProduceResponse

from .house import House, batch, produce_parts, produce_request
from .memory_client import MemoryClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from odradek.kernel.wire.messages.api_00_produce import ProduceRequest

NONE = ErrorCode.NONE
MANY = 4 * PARTITIONS_PER_SLICE


class Admitting:
    """A coordinator that agrees, and notes with how many partitions at a time."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def admit(self, admission: Admission, done: Any) -> None:
        self.sizes.append(len(admission.partitions))
        done(dict.fromkeys(admission.partitions, NONE))

    def init_producer_id(self, request: object, context: object) -> Any:
        raise AssertionError("nobody asks")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path, Admitting())
    house.hosted.open("t", MANY)
    yield house
    house.hosted.lifecycle.close()


def wide(data: Callable[[int], bytes] = lambda index: batch(b"%d" % index), count: int = MANY, **more: Any) -> Any:
    return produce_request(*((index, data(index)) for index in range(count)), **more)


def write_to_each(house: House) -> None:
    """Have every partition's log made."""
    for index in range(MANY):
        house.client.ask(produce_request((index, batch(b"first"))), 9)


def transactional(producer_id: int) -> bytes:
    return batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)


def ends(house: House) -> list[int]:
    return [replica.log.log_end_offset for replica in house.hosted.replicas]


def play(house: House, scenario: Callable[[], Any]) -> None:
    """Run a scenario beside the router's tasks, and a reactor that ends a turn in each pass."""

    async def turns() -> None:
        while True:
            house.client.turn()
            await trio.lowlevel.checkpoint()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(house.router.run)
            nursery.start_soon(turns)
            await scenario()
            nursery.cancel_scope.cancel()

    trio.run(main)


async def answered(client: MemoryClient) -> Any:
    while not (found := client.received()):
        await trio.lowlevel.checkpoint()
    return found[0]


def asked(house: House, request: ProduceRequest, version: int = 9) -> Any:
    found: list[Any] = []

    async def scenario() -> None:
        house.client.send(request, version)
        found.append(await answered(house.client))

    play(house, scenario)
    return found[0]


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_wide_produce_is_answered_as_one(house: House, acks: int) -> None:
    answer = asked(house, wide(acks=acks))

    assert isinstance(answer, ProduceResponse)
    assert [(topic.name, len(topic.partition_responses)) for topic in answer.responses] == [("t", MANY)]
    assert [(part.index, part.error_code, part.base_offset) for part in produce_parts(answer)] == [
        (index, NONE, 0) for index in range(MANY)
    ]
    assert ends(house) == [1] * MANY


@pytest.mark.parametrize(("is_new", "slice_max"), [(False, PARTITIONS_PER_SLICE), (True, FIRST_BATCHES_MAX)])
def test_between_two_slices_others_are_served(house: House, is_new: bool, slice_max: int) -> None:
    """The slices are shorter where each batch makes a log."""
    if not is_new:
        write_to_each(house)
    before = sum(ends(house))
    other = MemoryClient(house.router)
    steps: list[int] = []

    async def scenario() -> None:
        house.client.send(wide(), 9)
        assert sum(ends(house)) == before, "nothing is staged in the turn in which it came"
        while sum(ends(house)) < before + MANY:
            other.ask(produce_request((MANY, None)), 9)  # an answer at once
            steps.append(sum(ends(house)))
            await trio.lowlevel.checkpoint()
        await answered(house.client)

    play(house, scenario)

    assert max(b - a for a, b in zip(steps, [*steps[1:], before + MANY], strict=True)) == slice_max


def test_a_request_that_is_not_wide_is_staged_in_its_turn(house: House) -> None:
    write_to_each(house)
    answer = house.client.ask(wide(count=AT_ONCE_MAX), 9)

    assert len(produce_parts(answer)) == AT_ONCE_MAX


@pytest.mark.parametrize("version", [9, 13])
def test_first_batches_of_few_partitions_are_staged_in_their_turn(house: House, version: int) -> None:
    answers = []
    for count in (FIRST_BATCHES_MAX, 2 * FIRST_BATCHES_MAX):
        request = wide(count=count)
        request.topic_data[0].topic_id = house.hosted.replicas.topics["t"].topic_id
        answers.append(house.client.ask(request, version))

    assert [len(produce_parts(answer)) for answer in answers] == [FIRST_BATCHES_MAX, 2 * FIRST_BATCHES_MAX]


def test_what_refuses_a_request_refuses_it_before_anything_is_staged(house: House) -> None:
    short = asked(house, wide(lambda index: bytes(20) if index == MANY - 1 else batch(b"v")))
    unnamed = asked(house, wide(lambda index: transactional(5) if index == MANY - 1 else batch(b"v")))
    request = wide(lambda index: transactional(5 + index // (MANY - 1)))
    request.transactional_id = "x"
    mixed = asked(house, request, 12)

    assert {part.error_code for part in produce_parts(short)} == {ErrorCode.CORRUPT_MESSAGE}
    assert {part.error_code for part in produce_parts(unnamed)} == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
    assert {part.error_code for part in produce_parts(mixed)} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert ends(house) == [0] * MANY


def test_partitions_of_a_transaction_are_admitted_slice_by_slice(house: House) -> None:
    request = wide(lambda _: transactional(5))
    request.transactional_id = "x"
    answer = asked(house, request, 12)

    assert {part.error_code for part in produce_parts(answer)} == {NONE}
    assert house.transactions.sizes == [FIRST_BATCHES_MAX] * (MANY // FIRST_BATCHES_MAX)  # type: ignore[union-attr]


def test_of_a_partition_that_stands_twice_the_last_batch_is_appended(house: House) -> None:
    parts = [(index, batch(b"first")) for index in range(MANY)] + [(0, batch(b"last", b"one"))]
    answer = asked(house, produce_request(*parts))

    assert len(produce_parts(answer)) == MANY
    assert ends(house) == [2, *[1] * (MANY - 1)]


@pytest.mark.parametrize("acks", [-1, 0])
@pytest.mark.parametrize("is_begun", [False, True])
def test_what_a_client_sent_that_leaves_is_staged_all_the_same(house: House, acks: int, is_begun: bool) -> None:
    async def scenario() -> None:
        house.client.send(wide(acks=acks), 9)
        while is_begun and not sum(ends(house)):
            await trio.lowlevel.checkpoint()
        house.client.leave()
        with trio.fail_after(30):
            while sum(ends(house)) < MANY:
                await trio.lowlevel.checkpoint()

    play(house, scenario)


def test_what_is_begun_when_the_broker_ends_is_staged(house: House) -> None:
    async def scenario() -> None:
        house.client.send(wide(), 9)
        while not sum(ends(house)):
            await trio.lowlevel.checkpoint()

    play(house, scenario)

    assert ends(house) == [1] * MANY


def test_with_acks_0_the_next_request_finds_what_it_wrote(house: House) -> None:
    async def scenario() -> None:
        house.client.send_together(wide(acks=0), produce_request((0, batch(b"later"))), version=9)
        house.client._asked.pop(0)  # is not answered
        while not (found := house.client.received()):
            if house.client.connection.has_frame_to_take:
                house.client.connection.process(house.router)
            await trio.lowlevel.checkpoint()
        (part,) = produce_parts(found[0])
        assert (part.error_code, part.base_offset) == (NONE, 1)

    play(house, scenario)


def test_its_memory_counts_as_lent_until_it_is_staged(house: House) -> None:
    memory = house.client._memory

    async def scenario() -> None:
        house.client.send(wide(), 9)
        while not sum(ends(house)):
            await trio.lowlevel.checkpoint()
        assert memory.kept_bytes >= MANY * len(batch(b"1"))
        await answered(house.client)
        assert memory.kept_bytes == 0

    play(house, scenario)
