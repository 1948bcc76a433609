"""What a leader writes at the begin of its epoch where replicas vote: no transaction's end, though a control batch."""

from __future__ import annotations

from odradek.kernel.cleanup.marked_transactions import MarkedTransactions, UntouchedTransactions
from odradek.kernel.partitions.transaction_index import AbortedTransaction
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.control import LeaderChange, QuorumVoter, build_control_batch


def test_a_leaders_record_is_no_end_of_a_transaction_and_stays() -> None:
    change = LeaderChange(version=0, leader_id=1, voters=[QuorumVoter(voter_id=1)], granting_voters=[])
    batch = bytes(build_control_batch([change], timestamp=1, base_offset=3, partition_leader_epoch=2))
    header = read_header(batch)
    open_one = AbortedTransaction(7, 0, 5, 0)

    assert (header.is_control, header.producer_id, header.base_offset) == (True, -1, 3)
    for transactions in (MarkedTransactions([open_one]), UntouchedTransactions([open_one])):
        assert not transactions.is_marker_idle(batch, header)
        assert transactions.take_kept() == []
