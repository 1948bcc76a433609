"""Pure core: AlterPartition of a partition whose replicas vote: its leader tells that it leads, in which epoch.

The controller is told, not asked: there is one writer of such a partition's epochs, its election. What is told is a
fact, so metadata that the leader does not know yet is no obstacle; what it tells again is no change.

| refused | because |
| --- | --- |
| NOT_CONTROLLER | the leader knows a later partition epoch than this controller: it told an old one |
| FENCED_LEADER_EPOCH | somebody has led in a later epoch |
| INVALID_REQUEST | the teller is no replica, or in its epoch another one was told to lead |
| INELIGIBLE_REPLICA | it is fenced, about to stop, or its directory failed: nobody would be sent there (KIP-841) |

While voters change, a leader also tells by whom it was elected, in the in-sync set, and of which step these voters are,
in the partition epoch: then the next step is made (`voter_steps`). Otherwise the in-sync set is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ..errors import ErrorCode, KafkaError
from ..metadata.image import NO_LEADER
from .partition_states import voters_state
from .voter_steps import told

if TYPE_CHECKING:
    from ..contracts.election import PartitionState
    from ..wire.messages.api_56_alter_partition import PartitionData
    from .partition_states import PartitionRules


def announced_state(
    state: PartitionState, broker_id: int, asked: PartitionData, rules: PartitionRules
) -> PartitionState | None:
    """Return the state that follows when a broker tells that it leads; None: it is the same.

    Args:
        state: What is.
        broker_id: Who leads.
        asked: In which epoch, and by whom it was elected.
        rules: Of this partition.

    Raises:
        KafkaError: It is refused.
    """
    if asked.partition_epoch > state.partition_epoch:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if asked.leader_epoch < state.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    has_other_leader = asked.leader_epoch == state.leader_epoch and state.leader not in {NO_LEADER, broker_id}
    if broker_id not in state.replicas or has_other_leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if broker_id not in rules.live:
        raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
    following = attrs.evolve(state, leader=broker_id, leader_epoch=asked.leader_epoch)
    isr = [member.broker_id for member in asked.new_isr_with_epochs]
    if isr:
        following = told(following, asked.partition_epoch, isr, rules.live)
    return voters_state(state, following, rules)
