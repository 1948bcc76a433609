"""Shell: log lines as JSON, an object a line, for what gathers and searches logs.

    {"time": "2026-11-21T14:30:21.107Z", "level": "WARNING", "logger": "partitions.replicas",
     "message": "the log failed", "partition": "orders-3", "reason": "disk full"}

The fields of an event stand beside the four that every line has. A module of its own: nobody else pays for `json`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .lines import LineFormatter, event_of

if TYPE_CHECKING:
    import logging


class JsonFormatter(LineFormatter):
    """Makes one line of a log record, also with a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        event = event_of(record)
        entry = {
            "time": event.time,
            "level": record.levelname,
            "logger": event.logger,
            "message": record.getMessage(),
        }
        fields = {**event.fields, **event.error_fields}
        if self.with_tracebacks and record.exc_info and record.exc_info[1] is not None:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps({**fields, **entry} if fields.keys() & entry.keys() else {**entry, **fields}, default=str)
