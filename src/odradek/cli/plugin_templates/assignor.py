"""Pure core: the project of an assignor."""

from __future__ import annotations

from typing import Final

SUMMARY: Final = "An assignor: it says which member of a group reads which partitions."
TRY: Final = """\
odradek assign simulate --assignor my_plugin -e "topic orders 6; join a; join b; join c; leave a"
"""

HOOKS: Final = '''\
"""An assignor that deals partitions to whoever has fewest."""

from collections.abc import Mapping

from odradek.kernel.api import Assignor, hookimpl

from .assignor import MyPluginAssignor

odradek_plugin_api = 1


@hookimpl
def odradek_assignors() -> Mapping[str, Assignor]:
    """Offer the strategy `my_plugin`."""
    return {"my_plugin": MyPluginAssignor()}
'''

ASSIGNOR: Final = '''\
"""The assignor."""

from collections.abc import Mapping, Sequence

from odradek.kernel.api import Assignor, GroupMember, MemberAssignment, SubscribedTopic


class MyPluginAssignor(Assignor):
    """Gives each partition to the member with the fewest. Pure: the same arguments give the same assignment."""

    name = "my_plugin"
    is_server_side = True

    def assign(
        self, members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
    ) -> Mapping[str, MemberAssignment]:
        """Return every member's assignment, by member id."""
        given: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in members}
        counts = dict.fromkeys(given, 0)
        for topic in sorted(topics):
            readers = sorted(member.member_id for member in members if topic in member.topics)
            for partition in range(topics[topic].partitions_count if readers else 0):
                chosen = min(readers, key=lambda reader: counts[reader])
                counts[chosen] += 1
                given[chosen].setdefault(topic, []).append(partition)
        return {member_id: MemberAssignment(partitions) for member_id, partitions in given.items()}
'''

TEST: Final = '''\
"""The assignor keeps what Odradek counts on, and does what it is for."""

from my_plugin.assignor import MyPluginAssignor

from odradek.kernel.api import Assignor, GroupMember, SubscribedTopic
from odradek.testing.contracts.assignor import AssignorContract


class TestMyPlugin(AssignorContract):
    is_sticky = False  # it looks at nothing that members had before

    def make_assignor(self) -> Assignor:
        return MyPluginAssignor()


def test_partitions_are_dealt_in_turn() -> None:
    members = [GroupMember(name, frozenset({"orders"})) for name in ("b", "a")]
    given = MyPluginAssignor().assign(members, {"orders": SubscribedTopic(3)})

    assert {name: one.partitions for name, one in given.items()} == {"a": {"orders": [0, 2]}, "b": {"orders": [1]}}
'''

FILES: Final = {
    "src/my_plugin/__init__.py": HOOKS,
    "src/my_plugin/assignor.py": ASSIGNOR,
    "tests/test_my_plugin.py": TEST,
}
