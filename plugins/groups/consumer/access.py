"""Pure core: who may commit, read and delete the offsets of a consumer group, and delete the group.

*Source:* KIP-848; KIP-1251 for commits in an older epoch; the behaviour of Kafka 4.3's ConsumerGroup.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from ..group import PartitionCheck
    from .member import Member

EPOCH_AWARE_COMMIT: int = 9
"""The version of OffsetCommit whose senders may be members of the consumer protocol."""


class AccessChecks:
    """The checks of a consumer group; a base of `ConsumerGroup`."""

    group_id: str
    members: dict[str, Member]

    def validate_offset_commit(
        self, *, member_id: str, instance_id: str | None, generation: int, is_transactional: bool, api_version: int
    ) -> PartitionCheck | None:
        """Check that the sender may commit; see `Group.validate_offset_commit`.

        A member that has moved on since it read may still commit what it was given before the epoch that it names.
        """
        if generation < 0 and not self.members:
            return None
        if is_transactional and generation == -1 and not member_id and instance_id is None:
            return None
        member = self._known_member(member_id)
        if not is_transactional and not member.is_classic and api_version < EPOCH_AWARE_COMMIT:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
            )
        if generation == member.member_epoch:
            return None
        if generation > member.member_epoch:
            named = "generation id" if member.is_classic else "member epoch"
            raise _stale(
                member, f"Received {named} {generation} is newer than current member epoch {member.member_epoch}."
            )
        return partial(_check_partition, member, generation)

    def validate_offset_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        """Check that the sender may read offsets; see `Group.validate_offset_fetch`."""
        if member_id is None and member_epoch < 0:
            return
        member = self._known_member(member_id)
        if member_epoch != member.member_epoch:
            named = "generation id" if member.is_classic else "member epoch"
            raise _stale(
                member,
                f"The received {named} {member_epoch} does not match the expected member epoch {member.member_epoch}.",
            )

    def validate_offset_delete(self) -> None:
        """Offsets of topics that nobody reads may be deleted at any time."""

    def validate_delete(self) -> None:
        """Check that the group may be deleted; see `Group.validate_delete`."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def offsets_expire_from(self) -> Callable[[int], int] | None:
        """Return from when on the retention of offsets counts: their commit, as long as nobody reads their topic."""
        return _since_commit

    def _known_member(self, member_id: str | None) -> Member:
        member = self.members.get(member_id) if member_id is not None else None
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member


def _since_commit(commit_timestamp_ms: int) -> int:
    return commit_timestamp_ms


def _stale(member: Member, detail: str) -> KafkaError:
    return KafkaError(ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH, detail)


def _check_partition(member: Member, epoch: int, topic: str, topic_id: UUID, partition: int) -> None:
    """Check that a member was given a partition no later than in the epoch that it names.

    Raises:
        KafkaError: STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION to a member of the classic protocol.
    """
    given_in = member.assigned.get(topic_id, {}).get(partition)
    if given_in is None:
        given_in = member.revoking.get(topic_id, {}).get(partition)
    if given_in is None:
        raise _stale(member, f"Partition {topic}-{partition} is not assigned or pending revocation for member.")
    if epoch < given_in:
        named = "generation id" if member.is_classic else "member epoch"
        raise _stale(
            member,
            f"Received {named} {epoch} is older than assignment epoch {given_in} for partition {topic}-{partition}.",
        )
