import io
import logging

import pytest

from odradek.cli.logs.lines import configure_logging


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


log = logging.getLogger("odradek.kernel.partitions.replicas")


def test_an_event_is_one_line_with_its_fields(stream: io.StringIO) -> None:
    configure_logging(0, stream)
    log.warning("the log of %s failed", "t", extra={"partition": "t-3", "reason": "disk full", "quoted": 'a"b'})
    when, rest = stream.getvalue().split(" ", 1)

    assert len(when) == len("2026-11-21T14:30:21.107Z")
    assert rest == (
        'WARNING partitions.replicas: the log of t failed partition=t-3 reason="disk full" quoted="a\\"b"\n'
    )


def test_what_a_client_sent_cannot_forge_a_line(stream: io.StringIO) -> None:
    configure_logging(0, stream)
    log.warning("client %s", "x\n2026 ERROR forged\x1b[31m", extra={"id": "a\rb"})

    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith("client x\\n2026 ERROR forged\\x1b[31m id=a\\rb\n")


@pytest.mark.parametrize(("verbosity", "lines"), [(0, 1), (1, 2), (2, 3), (9, 3)])
def test_more_v_give_more_lines(stream: io.StringIO, verbosity: int, lines: int) -> None:
    configure_logging(verbosity, stream)
    log.debug("debug")
    log.info("info")
    log.warning("warning")

    assert len(stream.getvalue().splitlines()) == lines


@pytest.mark.parametrize("verbosity", [0, 1])
def test_an_exception_is_a_field_and_a_traceback_only_when_asked(stream: io.StringIO, verbosity: int) -> None:
    configure_logging(verbosity, stream)
    try:
        raise ValueError("broken\nvalue")
    except ValueError:
        log.exception("it failed")
    first, *others = stream.getvalue().splitlines()

    assert 'error="ValueError: broken\\nvalue at test_logs.py:' in first
    assert bool(others) == bool(verbosity)
    assert all(line.startswith("    ") for line in others)


def test_configuring_twice_gives_each_line_once(stream: io.StringIO) -> None:
    configure_logging(0, stream)
    configure_logging(0, stream)
    log.warning("once")

    assert stream.getvalue().count("once") == 1
