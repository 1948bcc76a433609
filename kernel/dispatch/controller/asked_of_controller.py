"""Pure core: what requests to a controller have in common: whose cluster, which epoch, who leads and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import ErrorCode

if TYPE_CHECKING:
    from ...metadata.feed_view import MetadataFeedView


def is_of_another_cluster(feed: MetadataFeedView, cluster_id: str | None) -> bool:
    """Return whether a request names another cluster than the node's; one that names none is anybody's."""
    return cluster_id is not None and bool(feed.cluster_id) and cluster_id != feed.cluster_id


def wrong_epoch(feed: MetadataFeedView, leader_epoch: int) -> ErrorCode:
    """Return why a request that is meant for the leader of an epoch is not for this node, NONE where it is."""
    if leader_epoch < feed.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader_epoch > feed.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if feed.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def leader_endpoints(feed: MetadataFeedView, leader_id: int, endpoint: type[Any]) -> list[Any]:
    """Return where the leader is found that an answer names: one, or none while it is not known."""
    found = feed.endpoint(leader_id)
    return [] if found is None else [endpoint(node_id=leader_id, host=found[0], port=found[1])]
