r"""Shell: log lines: one event a line, fields behind it, made for people and for `grep`.

    2026-11-21T14:30:21.107Z WARNING partitions.replicas: the log failed partition=orders-3 reason="disk full"

Modules use the standard library's logging and nothing else::

    log = logging.getLogger(__name__)
    log.warning("the log failed", extra={"partition": replica.partition, "reason": str(error)})

What comes from clients may hold line breaks or terminal codes: they are escaped, so that nobody can write a line
of its own. An exception is one field (`error="ValueError: ... at router.py:118"`), two more name the plugin in whose
code it was raised (`plugin=sqlite place="storage.py:88 in read"`); with `-v` its traceback follows, indented.

Of warnings, and of all that tells of clients, some lines that are alike are written and the others counted, so that
nobody can fill a disk with lines.
"""

from __future__ import annotations

import logging
import re
import time
from pathlib import PurePath
from traceback import extract_tb
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.kernel.contracts.culprits import culprit_of_error, root_of
from odradek.kernel.errors import PluginError

from .limit import LogLimit

if TYPE_CHECKING:
    from typing import TextIO

ROOT: Final = "odradek"
LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
"""By the number of `-v`."""

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PLAIN_VALUE: Final = re.compile(r'[^\s"=]+')


class LineFormatter(logging.Formatter):
    """Makes one line of a log record; several only for tracebacks."""

    def __init__(self, *, with_tracebacks: bool) -> None:
        super().__init__()
        self.with_tracebacks = with_tracebacks

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        event = event_of(record)
        parts = [
            f"{event.time} {record.levelname} {event.logger}: {_escape(record.getMessage())}",
            *(f"{key}={_quote(value)}" for key, value in event.fields.items()),
            *(f"{key}={_quote(value)}" for key, value in event.error_fields.items()),
        ]
        line = " ".join(parts)
        if event.error_fields and self.with_tracebacks and record.exc_info:
            line += "\n    " + self.formatException(record.exc_info).replace("\n", "\n    ")
        return line


class Event(NamedTuple):
    """What every form of a line says of a log record.

    Attributes:
        time: In UTC, to the millisecond.
        logger: Who says it, without what all names begin with.
        fields: What the event brought, by name.
        error_fields: What was raised; in which plugin, and where.
    """

    time: str
    logger: str
    fields: dict[str, object]
    error_fields: dict[str, str]


def event_of(record: logging.LogRecord) -> Event:
    """Return what there is to say of a log record."""
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    error = record.exc_info[1] if record.exc_info else None
    error_fields = {}
    if error is not None:
        error_fields["error"] = _describe(error)
        if isinstance(root := root_of(error), PluginError):
            error_fields["plugin"] = root.plugin  # told by whoever met it
        elif culprit := culprit_of_error(error):
            error_fields |= {"plugin": culprit.plugin, "place": culprit.place}
    name = record.name.removeprefix(f"{ROOT}.").removeprefix("kernel.")
    return Event(f"{when}.{int(record.msecs):03d}Z", name, fields, error_fields)


def _escape(text: str) -> str:
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _quote(value: object) -> str:
    text = _escape(str(value))
    if _PLAIN_VALUE.fullmatch(text):
        return text
    return '"' + text.replace('"', '\\"') + '"'


def _describe(error: BaseException) -> str:
    """Return what was raised and where; of a group of one, which trio's nurseries make, what is in it."""
    error = root_of(error)
    frames = extract_tb(error.__traceback__)
    place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


class LimitedHandler(logging.StreamHandler["TextIO"]):
    """Writes lines, but of those that are alike only some; see `limit.py`."""

    def __init__(self, stream: TextIO | None, limit: LogLimit) -> None:
        super().__init__(stream)
        self._limit = limit

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless there were many like it; before it, what was left out until now."""
        for told in self._limit.left_out():
            super().emit(told)
        if self._limit.admits(record):
            super().emit(record)

    def close(self) -> None:
        """Tell what was left out, and close; called when the process ends."""
        for told in self._limit.left_out(is_end=True):
            super().emit(told)
        super().close()


def configure_logging(verbosity: int, stream: TextIO | None = None, *, as_json: bool = False) -> None:
    """Send this project's log lines to standard error; called once, by a command.

    Other libraries' warnings go the same way. Calling it again replaces the earlier setting.

    Args:
        verbosity: Number of `-v`: 0 for warnings, 1 for what happens, 2 or more for everything.
        stream: Where to, by default standard error.
        as_json: Whether a line is a JSON object.
    """
    make = LineFormatter
    if as_json:
        from .json_lines import JsonFormatter

        make = JsonFormatter
    handler = LimitedHandler(stream, LogLimit(time.perf_counter))
    handler.setFormatter(make(with_tracebacks=verbosity > 0))
    handler.set_name(ROOT)
    root = logging.getLogger()
    for other in root.handlers[:]:
        if other.get_name() == ROOT:
            root.removeHandler(other)
    root.addHandler(handler)
    logging.getLogger(ROOT).setLevel(LEVELS[min(verbosity, len(LEVELS) - 1)])
