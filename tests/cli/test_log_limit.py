"""Lines that are alike do not fill the log: some are written, the others counted, and the count is told."""

from __future__ import annotations

import io
import logging

from odradek.cli.logs.limit import LINES_MAX, WINDOW_SECONDS, LogLimit
from odradek.cli.logs.lines import LimitedHandler


class Timer:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def lines_of(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def logged(level: int = logging.ERROR, name: str = "odradek.x") -> tuple[LimitedHandler, io.StringIO, Timer]:
    stream, timer = io.StringIO(), Timer()
    return LimitedHandler(stream, LogLimit(timer)), stream, timer


def say(handler: LimitedHandler, text: str, *args: object, level: int = logging.ERROR, name: str = "odradek.x") -> None:
    handler.handle(logging.LogRecord(name, level, "f.py", 1, text, args, None))


def test_lines_that_are_alike_are_counted_and_the_count_is_told() -> None:
    handler, stream, timer = logged()
    for number in range(3000):
        say(handler, "request %d failed", number)
    say(handler, "something else")
    assert len(lines_of(stream)) == LINES_MAX + 1

    timer.now_s += WINDOW_SECONDS
    say(handler, "request %d failed", 3000)

    assert lines_of(stream)[-2:] == [
        f"{3000 - LINES_MAX} more lines like this one were left out: request 0 failed",
        "request 3000 failed",
    ]


def test_what_was_left_out_is_told_when_the_log_is_closed() -> None:
    handler, stream, _timer = logged()
    for _ in range(LINES_MAX + 2):
        say(handler, "again")
    handler.close()

    assert lines_of(stream)[-1] == "2 more lines like this one were left out: again"


def test_what_is_only_information_is_limited_where_clients_cause_it() -> None:
    handler, stream, _timer = logged()
    for _ in range(100):
        say(handler, "a", level=logging.INFO)
        say(handler, "b", level=logging.INFO, name="odradek.kernel.network.endpoint")

    assert lines_of(stream).count("a") == 100
    assert lines_of(stream).count("b") == LINES_MAX
