"""Pure core: the protocols of groups."""

from __future__ import annotations

from enum import Enum


class GroupType(Enum):
    """The protocols of groups, as ListGroups names them."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
