"""The scenario `spread_transactions`: what it finds when something is broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from odradek.kernel.cluster.coordinator_admissions import ClusterTransactions
from odradek.kernel.cluster.marker_routes import ClusterMarkerWriter, Sending
from odradek.kernel.contracts.transactions import Admission, TransactionMarker
from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import TopicPartition
from odradek.lab.simulator.runs import run_seed
from odradek.lab.simulator.spread_transactions import SPREAD_TRANSACTIONS

Done = Callable[[Mapping[TopicPartition, ErrorCode]], None]


def admit_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask no coordinator: partitions are no part of any transaction, and no marker comes."""

    def admit(self: ClusterTransactions, admission: Admission, done: Done) -> None:
        done(dict.fromkeys(admission.partitions, ErrorCode.NONE))

    monkeypatch.setattr(ClusterTransactions, "admit", admit)


def take_markers_for_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose all that goes to other brokers."""
    write = ClusterMarkerWriter.write

    def write_or_lose(self: ClusterMarkerWriter, marker: TransactionMarker, done: Done) -> None:
        monkeypatch.setattr(self.batches, "put", lambda _node, sending: _written(sending))
        write(self, marker, done)

    monkeypatch.setattr(ClusterMarkerWriter, "write", write_or_lose)


def _written(sending: Sending) -> None:
    for partition in sending.marker.partitions:
        sending.note(partition, ErrorCode.NONE)


@pytest.mark.unmeasured
@pytest.mark.parametrize("sabotage", [admit_everybody, take_markers_for_written])
def test_sabotage_is_found(sabotage: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    sabotage(monkeypatch)

    assert run_seed(SPREAD_TRANSACTIONS, 1, {}).failure
