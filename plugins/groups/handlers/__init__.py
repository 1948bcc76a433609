"""Requests to operations: one file an API. A handler decides who is asked, and how the answer is put."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .api_08_offset_commit import OffsetCommitHandler
from .api_09_offset_fetch import OffsetFetchHandler
from .api_11_join_group import JoinGroupHandler
from .api_12_heartbeat import HeartbeatHandler
from .api_13_leave_group import LeaveGroupHandler
from .api_14_sync_group import SyncGroupHandler
from .api_15_describe_groups import DescribeGroupsHandler
from .api_16_list_groups import ListGroupsHandler
from .api_28_txn_offset_commit import TxnOffsetCommitHandler
from .api_42_delete_groups import DeleteGroupsHandler
from .api_47_offset_delete import OffsetDeleteHandler
from .api_68_consumer_group_heartbeat import ConsumerGroupHeartbeatHandler
from .api_69_consumer_group_describe import ConsumerGroupDescribeHandler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import ApiHandler, BrokerHandle, CoordinatorRuntime

    from ..shard import GroupShard

HANDLERS: Final = (
    OffsetCommitHandler,
    OffsetFetchHandler,
    JoinGroupHandler,
    HeartbeatHandler,
    LeaveGroupHandler,
    SyncGroupHandler,
    DescribeGroupsHandler,
    ListGroupsHandler,
    TxnOffsetCommitHandler,
    DeleteGroupsHandler,
    OffsetDeleteHandler,
    ConsumerGroupHeartbeatHandler,
    ConsumerGroupDescribeHandler,
)


def group_handlers(runtime: CoordinatorRuntime[GroupShard], broker: BrokerHandle) -> Sequence[ApiHandler]:
    """Return the handlers of all APIs of groups."""
    return tuple(handler(runtime, broker) for handler in HANDLERS)
