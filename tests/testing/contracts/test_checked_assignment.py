"""What an assignor gives is looked at before anybody counts on it; the error names the plugin that gave it."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.kernel.api import (
    Assignor,
    GroupMember,
    MemberAssignment,
    PluginError,
    SubscribedTopic,
    checked_assignment,
)
from odradek.kernel.contracts import culprits as plugin_names

MEMBERS = [GroupMember("a", frozenset({"orders"}))]
TOPICS = {"orders": SubscribedTopic(2)}


class Gives(Assignor):
    name = "gives"

    def __init__(self, given: Any) -> None:
        self.given = given

    def assign(self, members: Any, topics: Any) -> Any:
        return self.given


@pytest.mark.parametrize("given", [{}, {"a": MemberAssignment({})}, {"a": MemberAssignment({"orders": range(2)})}])
def test_what_can_be_used_is_given_on(given: object) -> None:
    assert checked_assignment(Gives(given), MEMBERS, TOPICS) is given


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "gave None, not a mapping of member ids"),
        ({"b": MemberAssignment({})}, "gave something to 'b', which is no member"),
        ({"a": {"orders": [0]}}, r"gave 'a' \{'orders': \[0\]\}, which is no MemberAssignment"),
        ({"a": MemberAssignment({"other": [0]})}, "gave 'a' the topic 'other', which nobody subscribed to"),
        ({"a": MemberAssignment({"orders": [2]})}, r"gave 'a' of 'orders', which has 2 partitions, these: \[2\]"),
        ({"a": MemberAssignment({"orders": ["0"]})}, r"partitions of 'orders' \['0'\], which are no numbers"),  # type: ignore[list-item]
        ({"a": MemberAssignment({"orders": {0}})}, r"partitions of 'orders' \{0\}, which are no numbers"),  # type: ignore[dict-item]
    ],
)
def test_what_cannot_be_used_names_the_plugin_and_the_place(
    given: object, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in ("_names", "_roots"):  # or all tests' package would be its, in tests to come too
        monkeypatch.setattr(plugin_names, known, {})
    plugin_names.note_plugin("strange_assignors", __name__)

    with pytest.raises(PluginError, match=rf"^plugin 'strange_assignors': assignor 'gives' at .*\.py:\d+ .*{told}"):
        checked_assignment(Gives(given), MEMBERS, TOPICS)
