"""Pure core: which roles of a broker no active plugin has, and what a person reads of it.

A kernel comes up without any plugin, and says what is missing. What the configuration names must be there all the same:
a storage, an election or an assignor that somebody chose and that nobody offers stops the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from ..config.broker import BrokerConfig

CHOOSING_KEYS: Final = ("odradek.storage", "odradek.election", "odradek.internal.election", "odradek.metadata.election")
"""What an operator names the offers with that a broker keeps records by."""


@frozen
class PluginRole:
    """What only plugins do.

    Attributes:
        name: What is offered, or done.
        without: What is so while nobody does it.
        plugin: Which of ours does it.
    """

    name: str
    without: str
    plugin: str


STORAGE: Final = PluginRole(
    "offers a storage", "topics cannot be created, and what is set is forgotten at the end", "storage_segment"
)
ELECTION: Final = PluginRole("offers an election", "no partition has a leader", "election_isr")
CLEANUP: Final = PluginRole("offers a cleanup policy", "no record is ever deleted or compacted", "cleanup")
GROUPS: Final = PluginRole("coordinates groups", "consumers cannot join one, or commit offsets", "groups")
TRANSACTIONS: Final = PluginRole("coordinates transactions", "producers cannot begin one", "transactions")

ROLE_OF_KEY_TYPE: Final = {0: GROUPS, 1: TRANSACTIONS}
"""What FindCoordinator asks for."""


def told(role: PluginRole) -> str:
    """Return what a person is told of a role that nobody has."""
    return f"no active plugin {role.name}: {role.without}; install or enable one, such as {role.plugin!r}"


def missing_roles(
    *, storages: Set[str], elections: Set[str], cleanup_policies: Set[str], key_types: Set[int]
) -> Iterator[PluginRole]:
    """Iterate over the roles that nobody has, in the order of the damage.

    Args:
        storages: The names of what is offered.
        elections: The same.
        cleanup_policies: The same.
        key_types: Of the coordinators.
    """
    for offers, role in ((storages, STORAGE), (elections, ELECTION), (cleanup_policies, CLEANUP)):
        if not offers:
            yield role
    for key_type, role in ROLE_OF_KEY_TYPE.items():
        if key_type not in key_types:
            yield role


def keeps_nothing(config: BrokerConfig, storages: Set[str]) -> bool:
    """Return whether a broker runs without a storage: nobody offers one, and nobody named what it is kept by."""
    return not storages and not any(config.is_set(key) for key in CHOOSING_KEYS)
