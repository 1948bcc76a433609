"""Requests to operations: one file an API. A handler decides who is asked, and how the answer is put."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from odradek.kernel.api import LazyHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.kernel.api import ApiHandler, BrokerHandle, CoordinatorRuntime

    from ..shard import GroupShard

HANDLERS: Final = {
    8: ("api_08_offset_commit", "OffsetCommitHandler"),
    9: ("api_09_offset_fetch", "OffsetFetchHandler"),
    11: ("api_11_join_group", "JoinGroupHandler"),
    12: ("api_12_heartbeat", "HeartbeatHandler"),
    13: ("api_13_leave_group", "LeaveGroupHandler"),
    14: ("api_14_sync_group", "SyncGroupHandler"),
    15: ("api_15_describe_groups", "DescribeGroupsHandler"),
    16: ("api_16_list_groups", "ListGroupsHandler"),
    28: ("api_28_txn_offset_commit", "TxnOffsetCommitHandler"),
    42: ("api_42_delete_groups", "DeleteGroupsHandler"),
    47: ("api_47_offset_delete", "OffsetDeleteHandler"),
    68: ("api_68_consumer_group_heartbeat", "ConsumerGroupHeartbeatHandler"),
    69: ("api_69_consumer_group_describe", "ConsumerGroupDescribeHandler"),
}
"""API key to module and class; a module is imported when its API is asked for the first time."""


def group_handlers(runtime: CoordinatorRuntime[GroupShard], broker: BrokerHandle) -> Sequence[ApiHandler]:
    """Return the handlers of all APIs of groups."""

    def maker(module: str, name: str) -> Callable[[], ApiHandler]:
        return lambda: cast("ApiHandler", getattr(import_module(f".{module}", __name__), name)(runtime, broker))

    return tuple(LazyHandler(key, maker(module, name)) for key, (module, name) in HANDLERS.items())
