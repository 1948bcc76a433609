"""Pure core: what a broker's page of metrics says that a doctor asks for, in Prometheus' text format."""

from __future__ import annotations

import re
from typing import Final

_IDLE: Final = b"kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
_ACTIVE: Final = b"kafka_controller_kafkacontroller_activecontrollercount"
_PAUSED: Final = re.compile(rb'^odradek_retry_paused\{topic="([^"]*)"\} (\S+)', re.MULTILINE)


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


def paused_retries(page: bytes) -> dict[str, int]:
    """Return by retry topic in how many of its partitions that a broker leads nothing becomes a dead letter now."""
    counts = {name.decode(): int(float(count)) for name, count in _PAUSED.findall(page)}
    return {topic: count for topic, count in sorted(counts.items()) if count}
