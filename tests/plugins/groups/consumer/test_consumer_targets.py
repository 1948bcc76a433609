"""What an assignor of the coordinator is told."""

from __future__ import annotations

import uuid

from odradek.kernel.api import TopicView
from odradek.plugins.assignors import odradek_assignors
from odradek.plugins.groups.consumer.member import Member
from odradek.plugins.groups.consumer.targets import compute_targets

TOPIC = TopicView("t", uuid.UUID(int=7), 2, (frozenset({"near-a"}), frozenset({"near-b"})))


def test_racks_decide_nothing_in_the_coordinator_as_in_kafka() -> None:
    members = [Member("a", rack_id="near-b"), Member("b", rack_id="near-a")]
    targets = compute_targets(
        odradek_assignors()["range"], [(member, frozenset({"t"}), {}) for member in members], {"t": TOPIC}
    )

    assert {name: [list(parts) for parts in target.values()] for name, target in targets.items()} == {
        "a": [[0]],
        "b": [[1]],
    }
