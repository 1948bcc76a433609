"""The frame buffer: any chunking gives the same frames, memory grows and shrinks, views keep their promise."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.wire import DecodeError, FrameBuffer
from tests.profiled import counting_calls


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def one(frames: FrameBuffer) -> bytes:
    frame = frames.next_frame()
    assert frame is not None
    return bytes(frame)


def drain(frames: FrameBuffer) -> list[bytes]:
    found = []
    while (frame := frames.next_frame()) is not None:
        found.append(bytes(frame))
    return found


@given(
    payloads=st.lists(st.binary(max_size=200), max_size=12),
    chunks=st.lists(st.integers(1, 300), min_size=1, max_size=20),
    size_bytes=st.integers(5, 128),
)
def test_any_chunking_gives_the_same_frames(payloads: list[bytes], chunks: list[int], size_bytes: int) -> None:
    stream = b"".join(map(framed, payloads))
    frames = FrameBuffer(1000, size_bytes)
    found: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        space = frames.writable()
        assert space
        piece = stream[position : position + min(len(space), chunks[turn % len(chunks)])]
        space[: len(piece)] = piece
        frames.wrote(len(piece))
        found += drain(frames)
        position += len(piece)
        turn += 1

    assert payloads == found
    assert frames.buffered_bytes == 0


@given(payloads=st.lists(st.binary(max_size=50), max_size=12), size_bytes=st.integers(5, 64))
def test_frames_wait_in_the_buffer_until_they_are_asked_for(payloads: list[bytes], size_bytes: int) -> None:
    frames = FrameBuffer(1000, size_bytes)
    frames.receive(b"".join(map(framed, payloads)))

    assert payloads == drain(frames)


def test_a_frame_is_a_writable_view_without_a_copy() -> None:
    frames = FrameBuffer(100)
    frames.receive(framed(b"abc"))
    frame = frames.next_frame()
    assert frame is not None
    frame[0] = ord("A")

    assert bytes(frame) == b"Abc"
    assert not frame.readonly


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_a_size_outside_the_limit_is_refused_at_once(size: int) -> None:
    frames = FrameBuffer(100)
    frames.receive(struct.pack(">i", size))

    with pytest.raises(DecodeError, match="outside 0 to 100"):
        frames.next_frame()


def test_an_empty_frame_is_a_frame() -> None:
    frames = FrameBuffer(100)
    frames.receive(framed(b""))

    assert one(frames) == b""


def test_the_limit_can_be_raised_after_authentication() -> None:
    frames = FrameBuffer(100)
    frames.limit_bytes = 200
    frames.receive(framed(bytes(150)))

    assert frames.limit_bytes == 200
    assert one(frames) == bytes(150)


def test_a_size_prefix_alone_takes_little_memory() -> None:
    frames = FrameBuffer(1 << 30)
    frames.receive(struct.pack(">i", 1 << 30))
    assert frames.next_frame() is None
    frames.receive(bytes(100_000))

    assert frames.capacity_bytes <= 1 << 20


def test_a_large_frame_gets_a_buffer_of_its_size() -> None:
    frames = FrameBuffer(1 << 24)
    payload = bytes(range(256)) * 4096
    data = framed(payload)
    frames.receive(data[:1000])
    assert frames.next_frame() is None
    frames.receive(data[1000:])

    assert one(frames) == payload
    assert frames.capacity_bytes <= len(data) + 4


def test_a_frame_of_ten_megabytes_that_comes_in_pieces_is_moved_three_times() -> None:
    frames, payload = FrameBuffer(1 << 24), bytes(10 << 20)
    data = framed(payload)
    with counting_calls() as calls:
        for first in range(0, len(data), 1 << 18):
            assert frames.next_frame() is None
            frames.receive(data[first : first + (1 << 18)])

    assert one(frames) == payload
    # Once taken, for small frames; moved on for the first piece, when the size is known, and when there is more of it.
    assert calls[FrameBuffer._move.__code__] == 1 + 3


def test_a_connection_takes_no_memory_before_its_first_byte_and_none_when_idle() -> None:
    frames = FrameBuffer(1 << 20)
    assert frames.capacity_bytes == 0
    frames.receive(framed(b"abc"))
    frames.release()
    assert frames.capacity_bytes > 0
    assert drain(frames) == [b"abc"]
    frames.release()

    assert frames.capacity_bytes == 0
    assert frames.next_frame() is None


def test_a_large_buffer_is_given_back_after_a_quiet_time_but_not_at_once() -> None:
    frames = FrameBuffer(1 << 24, 1024)
    frames.receive(framed(bytes(100_000)))
    drain(frames)
    large = frames.capacity_bytes
    frames.receive(framed(b"small"))
    drain(frames)
    assert frames.capacity_bytes == large
    for _ in range(300):
        frames.receive(framed(b"small"))
        drain(frames)

    assert frames.capacity_bytes == 1024


def test_views_stay_valid_until_the_next_writable() -> None:
    frames = FrameBuffer(100, 64)
    frames.receive(framed(b"first") + framed(b"second"))
    first, second = frames.next_frame(), frames.next_frame()

    assert first is not None
    assert second is not None

    assert [bytes(first), bytes(second)] == [b"first", b"second"]


def test_detached_views_outlive_everything() -> None:
    frames = FrameBuffer(100, 64)
    frames.receive(framed(b"kept") + framed(b"half")[:6])
    kept = frames.next_frame()
    frames.detach()
    assert frames.next_frame() is None
    frames.receive(b"lf" + framed(bytes(60)))

    assert [b"half", bytes(60)] == drain(frames)
    assert kept is not None
    assert bytes(kept) == b"kept"


def test_its_representation_tells_its_state() -> None:
    frames = FrameBuffer(100, 64)
    frames.receive(b"\x00\x00")

    assert repr(frames) == "<FrameBuffer 2 of 64 bytes, limit 100>"
