"""Pure core: the members of a session's groups: ids, generations and epochs, so that most requests fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .world import Kind, Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .world import World

_MEMBER_ID_REQUIRED: Final = 79
_FIRST_GENERATION: Final = 1


class Members:
    """What the answers said of members, as of the first broker: ids that it drew are references."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._newest: dict[object, Reference] = {}
        self._generations: dict[object, int] = {}
        self._epochs: dict[object, int] = {}

    def of(self, group: object) -> Reference | None:
        """Return who joined a group last by the classic protocol, or was told the id to join with."""
        return self._newest.get(group)

    def generation_of(self, group: object) -> int:
        """Return a group's generation as it was told last."""
        return self._generations.get(group, _FIRST_GENERATION)

    def epoch_of(self, group: object, member: object) -> int:
        """Return the epoch of a member of the consumer protocol as it was told last, 0 for one that is to join."""
        return self._epochs.get((group, member), 0)

    def noted(self, api: str, fields: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Take note of an answer."""
        if api == "JoinGroup":
            group, code = fields["group_id"], answer["error_code"]
            if code in {0, _MEMBER_ID_REQUIRED} and answer["member_id"]:
                self._newest[group] = self._world.reference(Kind.MEMBER_ID, answer["member_id"])
            elif code:
                self._newest.pop(group, None)
            if not code:
                self._generations[group] = answer["generation_id"]
        elif api == "ConsumerGroupHeartbeat":
            self._epochs[fields["group_id"], fields["member_id"]] = max(answer["member_epoch"], 0)
