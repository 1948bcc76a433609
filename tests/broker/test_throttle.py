"""How fast a worker may be."""

import pytest

from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.throttle import Throttle


class Time:
    """A clock that waiting moves, and what is waited for."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.rate = 1000.0
        self.changes: dict[float, float] = {}

    def is_set(self) -> bool:
        return False

    def set(self) -> None:
        raise AssertionError("nobody stops it")

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None, "nobody wakes who waits for ever"
        self.now_s += timeout
        for at_s in [at_s for at_s in self.changes if at_s <= self.now_s]:
            self.rate = self.changes.pop(at_s)
        return False

    def throttle(self) -> Throttle:
        return Throttle(lambda: self.rate, lambda: self.now_s, self)


@pytest.mark.parametrize("size_bytes", [1, 100, 7_000])
def test_the_rate_is_kept_whatever_the_pieces(size_bytes: int) -> None:
    time = Time()
    throttle = time.throttle()
    for _ in range(70_000 // size_bytes):
        throttle.note(size_bytes)

    assert time.now_s == pytest.approx(70, abs=0.02)


def test_time_that_was_not_used_is_not_saved_up() -> None:
    time = Time()
    throttle = time.throttle()
    time.now_s = 3_600
    throttle.note(10_000)

    assert time.now_s == pytest.approx(3_610, abs=0.02)


def test_another_rate_acts_on_who_waits() -> None:
    time = Time()
    time.rate = 0.0
    time.changes = {5.0: 1.0, 10.0: 1e9}
    time.throttle().note(1_000_000)

    assert time.now_s == pytest.approx(10, abs=0.6)


def test_who_is_stopped_waits_no_more() -> None:
    throttle = Throttle(lambda: 1e-6, lambda: 0.0, SystemThreads().new_event())
    throttle.stop()

    throttle.note(1_000_000)


def test_all_bytes_are_told_of() -> None:
    time = Time()
    told: list[int] = []
    throttle = Throttle(lambda: time.rate, lambda: time.now_s, time, told.append)
    for size_bytes in (1, 3_000, 20):
        throttle.note(size_bytes)

    assert told == [1, 3_000, 20]
