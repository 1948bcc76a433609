"""The connection's own behaviour: frames, order, muting, memory."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.errors import MalformedRequestError
from odradek.kernel.network.connection import (
    FIRST_BLOCK_BYTES_MAX,
    FRAMES_PER_TURN_MAX,
    GROWTH,
    LARGE_FRAME_BYTES,
    Connection,
    ReplySlot,
)
from odradek.kernel.network.receive_memory import ARENA_BYTES, FREE_BYTES, WINDOW_BYTES, ReceiveMemory, block_capacity
from tests.connections import new_connection

from .conftest import framed

LIMIT = 8 * 1024 * 1024


class Recorder:
    """A receiver that keeps what it got, and opens a slot for every frame."""

    def __init__(self, *, answers: bool = True, holds: bool = False) -> None:
        self.frames: list[bytes] = []
        self.slots: list[ReplySlot] = []
        self._answers = answers
        self._holds = holds

    def connection_opened(self, connection: Connection) -> None: ...

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        if self._answers:
            slot = ReplySlot(connection)
            self.slots.append(slot)
            if self._holds:
                slot.hold()

    def turn_ended(self) -> None: ...

    def connection_closed(self, connection: Connection) -> None: ...


class Wakes:
    """A driver that counts, and stands in for the loop."""

    def __init__(self) -> None:
        self.count = 0

    def wake(self) -> None:
        self.count += 1

    def flush(self) -> None: ...


def make_connection(memory_bytes: int = 64 * 1024 * 1024) -> tuple[Connection, Wakes, ReceiveMemory]:
    wakes = Wakes()
    memory = ReceiveMemory(memory_bytes)
    return connect(memory, wakes), wakes, memory


def connect(memory: ReceiveMemory, wakes: Wakes) -> Connection:
    connection = new_connection(memory, frame_limit_bytes=LIMIT, wake=wakes.wake)
    connection.driver = wakes
    return connection


def sent(connection: Connection) -> bytes:
    pieces: list[Any] = connection.outgoing
    data = b"".join(pieces)
    connection.outgoing.clear()
    connection.is_dirty = False
    return data


def takes_input(connection: Connection) -> bool:
    """Ask anew: a type checker takes an answered property for constant."""
    return connection.wants_input


def test_a_frame_reaches_the_receiver_without_its_size() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder()

    connection.receive_data(framed(b"hello"), receiver)

    assert receiver.frames == [b"hello"]


def test_an_empty_frame_is_a_frame() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder()

    connection.receive_data(framed(b""), receiver)

    assert receiver.frames == [b""]


@given(st.lists(st.binary(max_size=300), max_size=20), st.data())
def test_any_chunking_gives_the_same_frames(bodies: list[bytes], data: st.DataObject) -> None:
    connection, _, memory = make_connection()
    receiver = Recorder(answers=False)
    stream = b"".join(map(framed, bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=30)))

    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        connection.receive_data(stream[start:end], receiver)

    assert receiver.frames == bodies
    assert memory.block_bytes == 0


@given(st.lists(st.sampled_from([0, 3, 70_000, 140_000, 600_000]), max_size=8), st.data())
def test_any_chunking_gives_the_same_large_frames(sizes: list[int], data: st.DataObject) -> None:
    connection, _, memory = make_connection()
    receiver = Recorder(answers=False)
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    stream = b"".join(map(framed, bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))

    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        connection.receive_data(stream[start:end], receiver)

    assert receiver.frames == bodies
    assert memory.block_bytes == 0


@given(st.permutations(range(6)), st.lists(st.booleans(), min_size=6, max_size=6))
def test_answers_leave_in_the_order_of_requests_whatever_order_they_come_in(
    order: list[int], is_answered: list[bool]
) -> None:
    connection, _, _ = make_connection()
    receiver = Recorder()
    connection.receive_data(b"".join(framed(b"kind%d" % number) for number in range(6)), receiver)
    left = b""

    for number in order:
        receiver.slots[number].complete([b"<%d" % number, b">"] if is_answered[number] else None)
        left += sent(connection)

    assert b"".join(b"<%d>" % number for number in range(6) if is_answered[number]) == left
    assert takes_input(connection)


def test_nothing_is_received_while_an_answer_is_owed() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder()
    connection.receive_data(framed(b"a"), receiver)

    assert not takes_input(connection)


def test_nothing_is_received_while_an_answer_has_not_left() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder()
    connection.receive_data(framed(b"a"), receiver)

    receiver.slots[0].complete([b"answer"])

    assert not takes_input(connection)
    assert sent(connection) == b"answer"
    assert takes_input(connection)


def test_a_request_without_an_answer_makes_room_for_the_next() -> None:
    connection, wakes, _ = make_connection()
    receiver = Recorder()
    connection.receive_data(framed(b"a"), receiver)

    receiver.slots[0].complete(None)

    assert takes_input(connection)
    assert wakes.count == 1


def test_a_held_answer_keeps_the_frames_behind_it_waiting_even_in_the_same_turn() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder(holds=True)
    connection.receive_data(framed(b"a") + framed(b"b") + framed(b"c"), receiver)
    assert receiver.frames == [b"a"]

    receiver.slots[0].complete(None)
    assert connection.has_frame_to_take
    assert not takes_input(connection)
    connection.process(receiver)

    assert receiver.frames == [b"a", b"b"]


def test_what_comes_behind_requests_of_another_api_waits_until_they_are_answered() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder()
    write, read = b"\0\0write", b"\0\1read"
    connection.receive_data(framed(write) + framed(write) + framed(read) + framed(read), receiver)
    assert receiver.frames == [write, write]

    for slot in receiver.slots[:]:
        assert not connection.has_frame_to_take
        slot.complete(None)
    assert connection.has_frame_to_take
    connection.process(receiver)

    assert receiver.frames == [write, write, read, read]


def test_what_comes_behind_requests_that_are_answered_is_taken_whatever_it_is() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder(answers=False)
    connection.receive_data(framed(b"\0\0write") + framed(b"\0\1read"), receiver)

    assert receiver.frames == [b"\0\0write", b"\0\1read"]


def test_a_held_answer_behind_an_owed_one_is_let_go_with_it() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder()
    connection.receive_data(framed(b"kind a") + framed(b"kind b"), receiver)
    receiver.slots[1].hold()

    receiver.slots[1].complete([b"second"])
    receiver.slots[0].complete([b"first"])

    assert connection.held_by is None
    assert sent(connection) == b"firstsecond"


def test_a_turn_takes_a_bounded_number_of_frames() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder(answers=False)
    connection.receive_data(framed(b"x") * (FRAMES_PER_TURN_MAX + 5), receiver)
    assert len(receiver.frames) == FRAMES_PER_TURN_MAX

    assert connection.has_frame_to_take
    connection.process(receiver)

    assert len(receiver.frames) == FRAMES_PER_TURN_MAX + 5
    assert takes_input(connection)


def test_an_answer_wakes_the_loop_once_until_it_was_looked_after() -> None:
    connection, wakes, _ = make_connection()
    receiver = Recorder()
    connection.receive_data(framed(b"a") + framed(b"b"), receiver)

    for slot in receiver.slots:
        slot.complete([b"x"])

    assert wakes.count == 1
    assert connection.turn.dirty == [wakes]


def test_an_answer_within_a_turn_does_not_wake_the_loop() -> None:
    connection, wakes, _ = make_connection()
    receiver = Recorder()
    connection.receive_data(framed(b"a"), receiver)

    connection.turn.is_active = True
    receiver.slots[0].complete([b"x"])

    assert wakes.count == 0
    assert connection.turn.dirty == [wakes]


def test_a_request_is_answered_once() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder()
    connection.receive_data(framed(b"a"), receiver)
    slot = receiver.slots[0]
    slot.complete(None)
    assert slot.is_complete

    with pytest.raises(AssertionError, match="once"):
        slot.complete(None)


@pytest.mark.parametrize("size", [-1, -(2**31), LIMIT + 1, 2**31 - 1, int.from_bytes(b"GET ", "big")])
def test_a_size_out_of_bounds_is_refused_before_memory_is_taken(size: int) -> None:
    connection, _, memory = make_connection()

    with pytest.raises(MalformedRequestError, match=str(size)):
        connection.receive_data(struct.pack(">i", size), Recorder())

    assert memory.block_bytes == 0


def test_the_limit_may_be_raised_once_the_client_is_known() -> None:
    connection, _, _ = make_connection()
    connection.frame_limit_bytes = 3
    receiver = Recorder(answers=False)
    with pytest.raises(MalformedRequestError):
        connection.receive_data(framed(b"long"), receiver)

    other, _, _ = make_connection()
    other.frame_limit_bytes = 4
    other.receive_data(framed(b"long"), receiver)

    assert receiver.frames == [b"long"]


def test_the_word_of_a_giant_frame_takes_little_memory() -> None:
    connection, _, memory = make_connection()

    connection.receive_data(struct.pack(">i", LIMIT) + b"x", Recorder())

    assert memory.block_bytes <= FIRST_BLOCK_BYTES_MAX


def test_a_frame_larger_than_the_first_block_is_received_whole() -> None:
    connection, _, memory = make_connection()
    receiver = Recorder(answers=False)
    body = bytes(range(256)) * (5 * 1024 * 4)

    connection.receive_data(framed(body), receiver)

    assert receiver.frames == [body]
    assert memory.block_bytes == 0


@pytest.mark.parametrize(
    ("last", "asked"),
    [
        (LARGE_FRAME_BYTES - 1, WINDOW_BYTES),
        (LARGE_FRAME_BYTES, 4 + LARGE_FRAME_BYTES),
        (WINDOW_BYTES - 4, WINDOW_BYTES),
        (WINDOW_BYTES - 3, 4),
    ],
)
def test_after_a_large_frame_one_as_large_is_asked_for_or_its_size_where_it_has_no_room_in_a_window(
    last: int, asked: int
) -> None:
    connection, _, _ = make_connection()

    connection.receive_data(framed(bytes(last)), Recorder(answers=False))

    assert asked == len(connection.writable())


def test_large_frames_of_one_size_borrow_nothing_and_need_no_copy() -> None:
    connection, _, memory = make_connection()
    receiver = Recorder(answers=False)
    frame = framed(bytes(60_000))
    connection.receive_data(frame, receiver)

    for _ in range(20):
        window = connection.writable()
        window[:] = frame
        connection.received(window, len(frame), receiver)

    assert [frame[4:]] * 21 == receiver.frames
    assert not memory.returned, "no block was lent and given back"


def test_an_idle_connection_owns_no_memory() -> None:
    connection, _, memory = make_connection()
    receiver = Recorder(answers=False)

    connection.receive_data(framed(bytes(100_000)) + framed(b"small"), receiver)

    assert memory.block_bytes == 0
    assert connection.begun_block_bytes == 0


def test_a_connection_beyond_the_memory_limit_waits_until_another_is_done() -> None:
    memory = ReceiveMemory(950_000)
    first, second = connect(memory, Wakes()), connect(memory, Wakes())
    receiver = Recorder(answers=False)
    body = bytes(900_000)
    first.receive_data(framed(body)[:800_000], receiver)
    second.receive_data(framed(body)[:10], receiver)
    assert not takes_input(second)
    assert not second.retry_memory()

    first.receive_data(framed(body)[800_000:], receiver)
    assert second.retry_memory()
    assert takes_input(second)
    second.receive_data(framed(body)[10:], receiver)

    assert receiver.frames == [body, body]
    assert memory.block_bytes == 0


def test_memory_is_lent_for_what_arrived_not_for_what_was_announced() -> None:
    memory = ReceiveMemory(256 * 1024 * 1024)
    receiver = Recorder(answers=False)
    announced = framed(bytes(1_000_000))[:30]
    for _ in range(130):
        connect(memory, Wakes()).receive_data(announced, receiver)

    assert memory.block_bytes <= 130 * FIRST_BLOCK_BYTES_MAX

    connection = connect(memory, Wakes())
    sent = framed(bytes(8_000_000))
    for end in (40, 50_000, 900_000, 5_000_000):
        before = memory.block_bytes - connection.begun_block_bytes
        received = connection._filled
        connection.receive_data(sent[received:end], receiver)
        lent = memory.block_bytes - before

        assert lent <= max(FIRST_BLOCK_BYTES_MAX, (GROWTH + 1) * end)
    connection.receive_data(sent[5_000_000:], receiver)

    assert [len(frame) for frame in receiver.frames] == [8_000_000]


def test_a_frame_that_grows_does_not_wait_for_its_own_memory() -> None:
    connection, _, memory = make_connection(3_000_000)
    receiver = Recorder(answers=False)
    data = framed(bytes(2_500_000))
    for start in range(0, len(data), 50_000):
        connection.receive_data(data[start : start + 50_000], receiver)

    assert [len(frame) for frame in receiver.frames] == [2_500_000]
    assert memory.block_bytes == 0


def test_a_frame_whose_first_window_came_is_copied_once() -> None:
    connection, _, _memory = make_connection()
    body = bytes(1_000_000)
    connection.receive_data(framed(body)[:WINDOW_BYTES], Recorder(answers=False))

    assert connection.begun_block_bytes >= len(body), "all its room is lent"


def test_a_client_that_kept_its_word_is_trusted_with_as_much_again() -> None:
    connection, _, _memory = make_connection()
    body = bytes(1_000_000)
    receiver = Recorder(answers=False)
    connection.receive_data(framed(body), receiver)
    connection.receive_data(framed(body)[:4], receiver)

    assert connection.begun_block_bytes >= len(body)


def test_an_idle_lender_gives_back_what_it_does_not_use() -> None:
    memory = ReceiveMemory(1_050_000)
    idle, busy = connect(memory, Wakes()), connect(memory, Wakes())
    receiver = Recorder(answers=False)
    body = bytes(900_000)
    idle.receive_data(framed(body)[:WINDOW_BYTES], receiver)
    busy.receive_data(framed(body)[:WINDOW_BYTES], receiver)
    assert busy.waits_for_memory

    assert idle.give_room_back()
    assert not idle.give_room_back(), "there is nothing left to give"
    assert busy.retry_memory()
    busy.receive_data(framed(body)[WINDOW_BYTES:], receiver)
    assert not takes_input(idle)
    assert idle.retry_memory()
    idle.receive_data(framed(body)[WINDOW_BYTES:], receiver)

    assert receiver.frames == [body, body]
    assert memory.block_bytes == memory.owed_bytes == 0


def feed(connection: Connection, data: bytes, receiver: Recorder) -> int:
    """Have `data` received as far as the connection takes it; return how much that was."""
    given = 0
    while given < len(data) and takes_input(connection):
        window = connection.writable()
        size_bytes = min(len(window), len(data) - given)
        window[:size_bytes] = data[given : given + size_bytes]
        connection.received(window, size_bytes, receiver)
        given += size_bytes
    return given


def help_one(waiting: list[Connection]) -> Connection | None:
    """Do what a loop does where nobody gets on by itself; return who was helped."""
    for connection in waiting:
        if connection.retry_memory():
            return connection
    return next((connection for connection in waiting if connection.retry_memory(is_beyond_limit=True)), None)


@pytest.mark.parametrize("is_beyond_limit", [False, True], ids=["within", "beyond"])
def test_however_many_stall_what_they_hold_stays_within_the_limit_and_one_block(is_beyond_limit: bool) -> None:
    limit_bytes = 2_000_000
    memory = ReceiveMemory(limit_bytes)
    receiver = Recorder(answers=False)
    frame = framed(bytes(600_000))
    most = 0
    for _ in range(60):
        connection = connect(memory, Wakes())
        taken = feed(connection, frame[:500_000], receiver)
        if is_beyond_limit and memory.is_stuck and connection.retry_memory(is_beyond_limit=True):
            feed(connection, frame[taken:500_000], receiver)
        connection.give_room_back()
        most = max(most, memory.block_bytes + memory.owed_bytes)

    bound_bytes = limit_bytes + 60 * FREE_BYTES + ARENA_BYTES
    assert most <= bound_bytes + is_beyond_limit * block_capacity(len(frame))


def test_who_pipelines_without_reading_answers_holds_no_more_than_the_limit() -> None:
    limit_bytes = 1_000_000
    memory = ReceiveMemory(limit_bytes)
    requests = framed(bytes(1000)) * 150
    for _ in range(100):
        connection = connect(memory, Wakes())
        window = connection.writable()
        size_bytes = min(len(window), len(requests))
        window[:size_bytes] = requests[:size_bytes]
        connection.received(window, size_bytes, Recorder(holds=True))

    assert memory.owed_bytes <= limit_bytes + 100 * FREE_BYTES + WINDOW_BYTES


def test_when_all_memory_is_with_frames_that_stalled_each_of_them_still_gets_on() -> None:
    memory = ReceiveMemory(2_000_000)
    receiver = Recorder(answers=False)
    frames = [framed(bytes([number]) * 600_000) for number in range(12)]
    connections = [connect(memory, Wakes()) for _ in frames]
    taken = {}
    for connection, frame in zip(connections, frames, strict=True):
        taken[connection] = feed(connection, frame[:500_000], receiver)
        connection.give_room_back()
    assert memory.is_stuck

    waiting = list(connections)
    while waiting:
        helped = help_one(waiting)
        assert helped is not None, f"{waiting} wait for good"
        frame = frames[connections.index(helped)]
        while taken[helped] < len(frame) and takes_input(helped):
            taken[helped] += feed(helped, frame[taken[helped] :], receiver)
        if taken[helped] == len(frame):
            waiting.remove(helped)

    assert sorted(frame[4:] for frame in frames) == sorted(receiver.frames)
    assert memory.counted_bytes == memory.owed_bytes == memory.block_bytes == memory.waiting_bytes == 0


def test_a_request_that_waits_for_others_gives_nothing_back_by_itself() -> None:
    memory = ReceiveMemory(1_000_000)
    busy, waiting, begun = (connect(memory, Wakes()) for _ in range(3))
    for connection in (busy, waiting):
        connection.keep_memory(600_000)
    feed(begun, framed(bytes(600_000))[:100_000], Recorder(answers=False))
    waiting.rest_memory(600_000)
    assert begun.waits_for_memory
    is_stuck = [memory.is_stuck]
    busy.let_memory_go(600_000)
    is_stuck.append(memory.is_stuck)
    waiting.wake_memory(600_000)
    is_stuck.append(memory.is_stuck)

    assert is_stuck == [False, True, False]


def test_small_requests_are_served_whatever_memory_is_held() -> None:
    memory = ReceiveMemory(1_000_000)
    memory.keep(1_000_000 + FREE_BYTES)
    connection, receiver = connect(memory, Wakes()), Recorder(answers=False)

    assert feed(connection, framed(bytes(FREE_BYTES - 4)) * 3, receiver) == 3 * FREE_BYTES
    assert [len(frame) for frame in receiver.frames] == [FREE_BYTES - 4] * 3
    assert len(connection.writable()) == FREE_BYTES

    memory.let_go(1_000_000 + FREE_BYTES)
    assert len(connection.writable()) == WINDOW_BYTES


def test_a_frame_larger_than_the_memory_limit_is_received_when_it_is_alone() -> None:
    connection, _, memory = make_connection(1000)
    receiver = Recorder(answers=False)

    connection.receive_data(framed(bytes(200_000)), receiver)

    assert [len(frame) for frame in receiver.frames] == [200_000]
    assert memory.block_bytes == 0


def test_a_closing_connection_takes_no_frame_and_is_finished_when_all_is_answered() -> None:
    connection, _, _ = make_connection()
    receiver = Recorder()
    connection.receive_data(framed(b"a"), receiver)

    states = []
    connection.close("because")
    states.append(connection.is_finished)
    receiver.slots[0].complete([b"x"])
    states.append(connection.is_finished)
    assert sent(connection) == b"x"
    states.append(connection.is_finished)

    assert states == [False, False, True]
    assert connection.close_reason == "because"
    assert connection.process(receiver) == 0


def test_an_answer_for_a_client_that_is_gone_goes_nowhere() -> None:
    connection, wakes, _ = make_connection()
    receiver = Recorder()
    connection.receive_data(framed(b"a"), receiver)

    connection.closed()
    receiver.slots[0].complete([b"x"])

    assert connection.outgoing == []
    assert wakes.count == 0
    assert not connection.is_open


def test_a_receiver_may_close_the_connection_between_two_frames() -> None:
    connection, _, _ = make_connection()

    class Closing(Recorder):
        def frame_received(self, connection: Connection, frame: memoryview) -> None:
            super().frame_received(connection, frame)
            connection.close("enough")

    receiver = Closing(answers=False)
    connection.receive_data(framed(b"a") + framed(b"b"), receiver)

    assert receiver.frames == [b"a"]


def test_a_kept_view_is_never_overwritten() -> None:
    connection, _, memory = make_connection()
    kept: list[memoryview] = []

    class Keeping(Recorder):
        def frame_received(self, connection: Connection, frame: memoryview) -> None:
            kept.append(frame)

    sizes = [10, 200_000, 10, 65_700] * 20
    for number, size in enumerate(sizes):
        connection.receive_data(framed(bytes([number]) * size), Keeping())
        memory.reclaim()

    for number, size in enumerate(sizes):
        assert kept[number] == bytes([number]) * size


def test_the_repr_tells_the_state() -> None:
    connection, _, _ = make_connection()
    connection.receive_data(framed(b"a") + b"\0\0", Recorder())

    assert repr(connection) == ("<Connection 1 127.0.0.1:5 by PLAINTEXT, open, 1 owed, 0 to send, 2 bytes begun>")
