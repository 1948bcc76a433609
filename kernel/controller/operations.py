"""Pure core: which of Kafka's requests the controller answers, each with the function that does.

A function takes the image, the controller's collaborators and the request as decoded, and returns records with the
response to be given once they are committed: at once, or as `Steps` where it may be long. The rules of each family live
in modules of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .broker_requests import broker_heartbeat, broker_registration
from .brokers import allocate_producer_ids, unregister_broker
from .config_changes import alter_configs, incremental_alter_configs
from .controllers import controller_registration
from .directory_changes import assign_replicas_to_dirs
from .feature_changes import update_features
from .isr_changes import alter_partition
from .lone_voter import change_of_voters
from .partition_changes import elect_leaders
from .reassignments import alter_partition_reassignments, list_partition_reassignments
from .topic_creation import create_topics
from .topic_deletion import delete_topics
from .topic_growth import create_partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..contracts.coordinator import CoordinatorResult
    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules, Steps

Decision: TypeAlias = "CoordinatorResult[MetadataRecord, Any] | Steps[Any]"
Decide: TypeAlias = "Callable[[MetadataImage, ControllerRules, Any], Decision]"

OPERATIONS: Final[Mapping[int, Decide]] = {
    19: create_topics,
    20: delete_topics,
    33: alter_configs,
    37: create_partitions,
    43: elect_leaders,
    44: incremental_alter_configs,
    45: alter_partition_reassignments,
    46: list_partition_reassignments,
    56: alter_partition,
    57: update_features,
    62: broker_registration,
    63: broker_heartbeat,
    64: unregister_broker,
    67: allocate_producer_ids,
    70: controller_registration,
    73: assign_replicas_to_dirs,
    80: change_of_voters,
    81: change_of_voters,
}
"""By API key."""
