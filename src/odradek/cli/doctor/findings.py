"""Pure core: all findings of a doctor, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .hosts import host_findings, load_findings, reach_findings
from .metadata import controller_findings, leader_findings, quorum_findings, skew_findings
from .replicas import replica_findings
from .retries import breaker_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .observations import Finding, Observations

_KINDS: Final[Sequence[Callable[[Observations], Iterator[Finding]]]] = (
    quorum_findings,
    controller_findings,
    leader_findings,
    replica_findings,
    reach_findings,
    load_findings,
    host_findings,
    breaker_findings,
    skew_findings,
)
"""Causes before what comes of them."""


def findings_of(seen: Observations) -> list[Finding]:
    """Return what is wrong, the worst first."""
    found = [finding for kind in _KINDS for finding in kind(seen)]
    return sorted(found, key=lambda finding: -finding.severity)
