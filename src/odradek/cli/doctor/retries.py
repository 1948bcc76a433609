"""Pure core: where failed records wait because of an outage."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.cli.output import plural

from .observations import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .observations import Observations


def breaker_findings(seen: Observations) -> Iterator[Finding]:
    """Yield retry topics whose dead letters are paused, once each, whoever leads their partitions."""
    paused: Counter[str] = Counter()
    for broker in seen.brokers.values():
        paused.update(broker.paused_retries)
    for topic, count in sorted(paused.items()):
        what = f"too much of {topic} would be dead at once, in {plural(count, 'partition')}: it waits and is given back"
        remedy = "mend what the group's workers call: dead letters then go on; odradek retry list counts what waits"
        yield Finding("dead-letters-paused", Severity.WARNING, what, remedy)
