"""The memory that requests are received into."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.network.receive_memory import ARENA_BYTES, ReceiveMemory, block_capacity, is_unused


@given(st.integers(1, 200_000_000))
def test_a_block_is_large_enough_and_wastes_little(size_bytes: int) -> None:
    capacity = block_capacity(size_bytes)

    assert capacity >= size_bytes
    assert capacity - size_bytes < max(4096, size_bytes / 7)


def test_memory_with_a_view_is_in_use() -> None:
    memory = bytearray(10)
    view = memoryview(memory)[2:3]
    assert not is_unused(memory)

    view.release()

    assert is_unused(memory)
    assert len(memory) == 10


def test_a_given_back_block_is_lent_again_once_nobody_views_it() -> None:
    memory = ReceiveMemory(1 << 20)
    block = memory.lend(100_000)
    assert block is not None
    view = memoryview(block)
    memory.give_back(block, is_owed=False)
    memory.reclaim()
    other = memory.lend(100_000)
    assert other is not block
    assert other is not None

    view.release()
    memory.give_back(other, is_owed=False)
    assert memory.returned
    memory.reclaim()

    assert memory.lend(100_000) is other


def test_spare_blocks_are_bounded_and_can_be_dropped() -> None:
    memory = ReceiveMemory(1 << 30, spare_limit_bytes=150_000)
    blocks = [memory.lend_owed(100_000) for _ in range(2)]
    for block in blocks:
        memory.give_back(block, is_owed=True)
    assert memory.owed_bytes == 0
    memory.reclaim()
    lent = memory.lend(100_000)
    assert lent is blocks[0]
    assert lent is not None

    memory.give_back(lent, is_owed=False)
    memory.reclaim()
    memory.drop_spares()

    assert memory.lend(100_000) is not blocks[0]


def test_the_same_arena_is_used_again_when_nobody_views_it() -> None:
    memory = ReceiveMemory(1 << 20)
    arena = memory.arena_view.obj
    memory.arena_position = ARENA_BYTES

    memory.next_arena()

    assert memory.arena_view.obj is arena
    assert memory.arena_position == 0


def test_a_viewed_arena_is_left_alone_and_used_again_later() -> None:
    memory = ReceiveMemory(1 << 20)
    first = memory.arena_view.obj
    view = memory.arena_view[:1]
    memory.next_arena()
    assert memory.arena_view.obj is not first

    second_view = memory.arena_view[:1]
    view.release()
    memory.next_arena()

    assert memory.arena_view.obj is first
    second_view.release()


def test_arenas_that_stay_viewed_are_not_hoarded() -> None:
    memory = ReceiveMemory(1 << 20)
    views = []
    for _ in range(10):
        views.append(memory.arena_view[:1])
        memory.next_arena()

    assert len({id(view.obj) for view in views}) == 10
