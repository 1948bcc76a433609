"""The kit of delay queues: a plain one passes, and each promise finds one that breaks it."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

import pytest

from odradek.kernel.api import WaitingRecord
from odradek.testing.contracts.delay_queue import DelayQueueContract


class Plain:
    """Sorts all that waits whenever it is asked."""

    def __init__(self) -> None:
        self.waiting: list[WaitingRecord] = []
        self.start_offset = 0

    @property
    def waiting_count(self) -> int:
        return len(self.waiting)

    def waits(self, waiting: WaitingRecord) -> None:
        self.waiting.append(waiting)

    def delivered(self, due_ms: int, origin: int) -> None:
        self.waiting = [each for each in self.waiting if each[:2] > (due_ms, origin)]

    def start_advanced(self, offset: int) -> None:
        self.waiting = [each for each in self.waiting if each.companion >= offset]

    def prepare(self, now_ms: int) -> bool:
        return True

    def due(self, now_ms: int, count_max: int) -> Sequence[WaitingRecord]:
        return sorted(each for each in self.waiting if each.due_ms <= now_ms)[:count_max]

    def next_due_ms(self) -> int | None:
        return min((each.due_ms for each in self.waiting), default=None)

    def encode(self) -> Iterable[bytes]:
        kept = pickle.dumps(self.waiting)
        return [bytes([sum(kept) % 256]), len(kept).to_bytes(4, "big"), kept]


class Factory:
    def __init__(self, kind: type[Plain] = Plain) -> None:
        self.kind = kind

    def new(self) -> Plain:
        return self.kind()

    def rounding(self, settings: Mapping[str, object]) -> Callable[[int, int], int] | None:
        return None

    def restore(self, data: bytes) -> Plain:
        kept = data[5:]
        if not data or sum(kept) % 256 != data[0] or len(kept) != int.from_bytes(data[1:5], "big"):
            raise ValueError("damaged")
        queue = self.kind()
        queue.waiting = pickle.loads(kept)
        return queue


class ByOffset(Plain):
    def due(self, now_ms: int, count_max: int) -> Sequence[WaitingRecord]:
        return sorted(super().due(now_ms, 1 << 30), key=lambda each: each.origin)[:count_max]


class Early(Plain):
    def due(self, now_ms: int, count_max: int) -> Sequence[WaitingRecord]:
        return super().due(now_ms + 10, count_max)


class Hasty(Plain):
    def due(self, now_ms: int, count_max: int) -> Sequence[WaitingRecord]:
        found = super().due(now_ms, count_max)
        self.waiting = [each for each in self.waiting if each not in found]
        return found


class Silent(Plain):
    def next_due_ms(self) -> int | None:
        return None


class Restless(Plain):
    """Gives nothing out in every other hour, and wants to be asked all the same."""

    def due(self, now_ms: int, count_max: int) -> Sequence[WaitingRecord]:
        return super().due(now_ms, count_max) if now_ms // 3_600_000 % 2 == 0 else []


class OneByOne(Plain):
    def delivered(self, due_ms: int, origin: int) -> None:
        self.waiting = [each for each in self.waiting if each[:2] != (due_ms, origin)]


class NeverBack(Plain):
    latest_ms = 0

    def waits(self, waiting: WaitingRecord) -> None:
        if waiting.due_ms > self.latest_ms:
            super().waits(waiting)

    def delivered(self, due_ms: int, origin: int) -> None:
        self.latest_ms = due_ms
        super().delivered(due_ms, origin)


class Clinging(Plain):
    def start_advanced(self, offset: int) -> None:
        """Keep all."""


class KeepsLittle(Plain):
    def encode(self) -> Iterable[bytes]:
        copy = Plain()
        copy.waiting = self.waiting[1:]
        return copy.encode()


class Trusting(Factory):
    def restore(self, data: bytes) -> Plain:
        try:
            return super().restore(data)
        except ValueError:
            return self.new()


class RoundsDown(Factory):
    def rounding(self, settings: Mapping[str, object]) -> Callable[[int, int], int] | None:
        return lambda due_ms, now_ms: due_ms - (due_ms - now_ms) % 5_000


def contract_of(factory: Factory, *, record_bytes_max: int | None = None) -> DelayQueueContract:
    promised = record_bytes_max

    class Contract(DelayQueueContract):
        record_bytes_max: ClassVar[int | None] = promised

        def make_factory(self) -> Factory:
            return factory

    return Contract()


BROKEN: dict[str, Factory] = {
    "test_all_that_waits_is_due_once_by_time_and_then_by_offset": Factory(ByOffset),
    "test_nothing_is_due_early": Factory(Early),
    "test_what_is_due_waits_until_it_was_delivered": Factory(Hasty),
    "test_it_says_when_to_look_again_and_never_too_late": Factory(Silent),
    "test_where_nothing_is_given_out_the_next_look_is_later": Factory(Restless),
    "test_a_delivery_ends_the_wait_of_all_that_was_in_the_order_before": Factory(OneByOne),
    "test_what_comes_late_is_due_at_once": Factory(NeverBack),
    "test_what_a_log_no_more_holds_does_not_wait": Factory(Clinging),
    "test_what_was_kept_is_what_the_log_says": Factory(KeepsLittle),
    "test_what_was_kept_and_is_damaged_is_refused": Trusting(),
    "test_a_due_time_is_rounded_to_no_earlier_one": RoundsDown(),
    "test_reading_what_waits_pauses_above_a_threshold_in_memory": Factory(),  # a list of tuples, all in memory
}
TESTS = [name for name, _ in inspect.getmembers(DelayQueueContract, inspect.isfunction) if name.startswith("test_")]


@pytest.mark.parametrize("name", TESTS)
def test_a_good_queue_passes(name: str) -> None:
    getattr(contract_of(Factory()), name)()


@pytest.mark.parametrize("name", TESTS)
def test_a_broken_queue_is_found(name: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(contract_of(BROKEN[name], record_bytes_max=24), name)()
