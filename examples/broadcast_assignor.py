"""An assignor of one's own, as a plugin in one file: every member gets every partition of its topics.

For caches that each process fills from a whole topic. Enable it by its module path in `odradek.toml`:

    [plugins]
    enable = ["*", "examples.broadcast_assignor"]

and see what it does: `odradek assign simulate --config odradek.toml --assignor broadcast`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.kernel.api import Assignor, GroupMember, MemberAssignment, SubscribedTopic, hookimpl


class BroadcastAssignor(Assignor):
    """The strategy `broadcast`."""

    name = "broadcast"

    def assign(
        self, members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
    ) -> Mapping[str, MemberAssignment]:
        """Give everything to everybody who asked for it."""
        return {
            member.member_id: MemberAssignment(
                {topic: range(topics[topic].partitions_count) for topic in sorted(member.topics & topics.keys())}
            )
            for member in members
        }


@hookimpl
def odradek_assignors() -> Mapping[str, Assignor]:
    """Offer it."""
    return {"broadcast": BroadcastAssignor()}
