"""Pure core: what the controller asks of others: configuration, elections, ids, chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import attrs

from ..classes import frozen
from ..config.roles import parse_roles
from ..contracts.election import is_among_replicas
from ..errors import ConfigError, ErrorCode, KafkaError
from ..metadata.image import ResourceType
from ..types import LOST_DIRECTORY, ZERO_ID
from .broker_sessions import BrokerSessions

if TYPE_CHECKING:
    import random
    from collections.abc import Generator, Mapping, Sequence, Set
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..contracts.coordinator import CoordinatorResult
    from ..contracts.election import ElectionFactory
    from ..machine.ids import IdSource
    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord

R = TypeVar("R")

ELECTION_KEYS: Final = ("odradek.election", "odradek.internal.election")
"""What a broker says of topics that choose none: ordinary ones, and those of coordinators."""
NEEDS_CLUSTER: Final = (
    "replicas that vote are a cluster's, and this broker is alone: it has no controller that others use"
)

Steps: TypeAlias = "Generator[None, None, CoordinatorResult[MetadataRecord, R]]"
"""An operation that may be long: yields after each partition, topic or the like, so that others come in between."""


@frozen
class ControllerRules:
    """The controller's collaborators, all pure.

    Attributes:
        node_id: The node that the controller runs on.
        config: Its configuration without the dynamic layers, which the image holds.
        elections: Election factories by name.
        ids: Makes topic ids.
        random: Where placements begin.
        internal_topics: Of coordinators: they are created with the cleanup policy they need, enabled or not.
        storages: Those that plugins offer, each with whether its log directories can be told apart: where a disk may
            have been replaced without a word, no replica may vote.
        sessions: When brokers were heard of last.
        has_own_broker: Whether the broker of the controller's node, if it is one, lives and dies with the controller,
            and registers without a request; among several controllers it is known by its requests, as all others are.
    """

    node_id: int
    config: BrokerConfig
    elections: Mapping[str, ElectionFactory]
    ids: IdSource
    random: random.Random
    internal_topics: Set[str] = frozenset()
    storages: Mapping[str, bool] = attrs.field(factory=lambda: {"segment": True})
    sessions: BrokerSessions = attrs.field(factory=BrokerSessions)
    has_own_broker: bool = True

    def is_own(self, broker_id: int) -> bool:
        """Return whether a broker lives and dies with this controller."""
        return self.has_own_broker and broker_id == self.node_id

    def config_at(self, image: MetadataImage) -> BrokerConfig:
        """Return the node's configuration with the dynamic layers of an image."""
        return dynamic_config(self.config, image, self.node_id)

    def check_storage(self) -> None:
        """See that a topic could be kept.

        Raises:
            KafkaError: INVALID_CONFIG: no plugin offers a storage.
        """
        if not self.storages:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "no active plugin of the broker offers a storage for topics")

    def election(self, name: str) -> ElectionFactory:
        """Return the election factory of a name.

        Raises:
            KafkaError: INVALID_CONFIG: no plugin offers it.
        """
        factory = self.elections.get(name)
        if factory is None:
            known = ", ".join(sorted(self.elections)) or "none"
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"odradek.election is {name!r}, which no enabled plugin offers; there is {known}",
            )
        return factory

    def election_of_new(self, name: str, storage: str) -> ElectionFactory:
        """Return the election factory of a name, for a topic that is to be made and kept by a storage.

        Raises:
            KafkaError: INVALID_CONFIG: no plugin offers it; or its replicas vote, and the broker is alone or the
                storage has no directories in which they could.
        """
        factory = self.election(name)
        if not is_among_replicas(factory):
            return factory
        if parse_roles(self.config).controller is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"odradek.election is {name!r}: {NEEDS_CLUSTER}")
        if not self.storages.get(storage, False):
            able = ", ".join(repr(each) for each, tells in sorted(self.storages.items()) if tells)
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"odradek.election is {name!r}, whose replicas keep their votes in log directories with ids, and "
                f"odradek.storage is {storage!r}, which has none: choose one that has them ({able or 'there is none'})",
            )
        return factory


def check_election(config: BrokerConfig, key: str, factory: ElectionFactory) -> None:
    """See that topics of a broker could have the election that a key names.

    Raises:
        ConfigError: Its replicas vote, and the broker is alone.
    """
    if is_among_replicas(factory) and parse_roles(config).controller is None:
        what = f"{key} is {config.get_text(key)!r}: {NEEDS_CLUSTER}"
        raise ConfigError(what, where=config.where(key), hint="choose another one, such as 'isr'")


def dynamic_config(config: BrokerConfig, image: MetadataImage, node_id: int) -> BrokerConfig:
    """Return a node's configuration with what the image holds for all brokers and for this one."""
    return config.with_dynamic(
        cluster=image.config(ResourceType.BROKER, ""), broker=image.config(ResourceType.BROKER, str(node_id))
    )


def replica_directories(
    image: MetadataImage, rules: ControllerRules, election: ElectionFactory, replicas: Sequence[int]
) -> list[UUID]:
    """Return the log directory of each replica of a new partition: known where a broker has only one.

    Where replicas vote it is chosen here: a voter is in one directory from the beginning, and without a vote in others,
    which are empty where a disk was replaced.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT: a voter's broker has no log directory.
    """
    has_voters = is_among_replicas(election)
    directories = []
    for replica in replicas:
        broker = image.brokers.get(replica)
        known = [each for each in broker.log_dirs if each != LOST_DIRECTORY] if broker is not None else []
        if len(known) == 1 or (known and has_voters):
            cordoned = broker.cordoned_log_dirs if broker is not None else ()
            free = [each for each in known if each not in cordoned] or known
            directories.append(free[0] if len(free) == 1 else rules.random.choice(free))
        elif has_voters:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"broker {replica} has no log directory, in which a replica that votes could keep its votes",
            )
        else:
            directories.append(ZERO_ID)
    return directories
