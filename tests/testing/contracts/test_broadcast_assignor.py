"""The example of an assignor of one's own passes the kit at the levels it declares."""

from __future__ import annotations

from examples.broadcast_assignor import BroadcastAssignor

from odradek.kernel.api import Assignor, GroupMember, SubscribedTopic
from odradek.testing.contracts.assignor import AssignorContract


class TestBroadcast(AssignorContract):
    gives_each_partition_once = False
    is_sticky = False  # whoever joins takes nothing from anybody

    def make_assignor(self) -> Assignor:
        return BroadcastAssignor()


def test_everybody_gets_everything_he_asked_for() -> None:
    members = [GroupMember("a", frozenset({"x"})), GroupMember("b", frozenset({"x", "y"}))]
    given = BroadcastAssignor().assign(members, {"x": SubscribedTopic(2), "y": SubscribedTopic(1)})

    assert {name: {t: list(p) for t, p in one.partitions.items()} for name, one in given.items()} == {
        "a": {"x": [0, 1]},
        "b": {"x": [0, 1], "y": [0]},
    }
