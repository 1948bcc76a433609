"""Pure core: what a broker's page of metrics says that a doctor asks for, in Prometheus' text format."""

from __future__ import annotations

import re
from typing import Final

_IDLE: Final = b"kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
_ACTIVE: Final = b"kafka_controller_kafkacontroller_activecontrollercount"


def _value(page: bytes, name: bytes) -> float | None:
    """Return a metric's value; None where the page has none."""
    found = re.search(rb"^%s(?:\{[^}]*\})? (\S+)" % re.escape(name), page, re.MULTILINE)
    return float(found[1]) if found else None


def idle_share(page: bytes) -> float | None:
    """Return how much of its time a broker waits for work, 0 to 1; None where it does not say."""
    return _value(page, _IDLE)


def is_active_controller(page: bytes) -> bool | None:
    """Return whether a node takes itself for the active controller; None where it is no controller."""
    active = _value(page, _ACTIVE)
    return None if active is None else bool(active)
