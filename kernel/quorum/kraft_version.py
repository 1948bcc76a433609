"""Shell: `kraft.version` is raised from 0 to 1: the log names the voters from then on, whom the configuration named.

    UpdateFeatures ──> may all of it be? (`controller/feature_changes.py`)
                   ──> the election: who votes, by registrations of controllers, and the directories of their fetches
                       ──> KRaftVersion and KRaftVoters, one batch, committed; nothing of `validate_only`
                   ──> the features are finalized, `kraft.version` among them

A crash between the last two leaves voters that the log names, and a feature that is finalized when it is asked for
again.

*Source:* KIP-853; `FeatureControlManager` and `KafkaRaftClient.upgradeKRaftVersion` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard

from ..errors import ErrorCode, KafkaError
from ..metadata.features import KRAFT_VERSION, NOT_SUPPORTED
from ..records.control import KRaftVersionRange, KRaftVoter, KRaftVoters, TriedVoters, VoterEndpoint
from ..wire.messages.api_57_update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from ..metadata.controller_calls import ControllerCalls
    from ..metadata.image import MetadataImage
    from ..wire.message import Message

FAILED: Final = "The update failed for all features since the following feature had an error: "


class NamingReplica(Protocol):
    """The replica of the metadata log, as who raises the version needs it."""

    @property
    def voters(self) -> KRaftVoters | None:
        """The newest voters that the log names, None where the configuration says it."""
        ...

    async def ask(self, broker_id: int, request: Message) -> Message:
        """Have the election answer a request."""
        ...


def raises_kraft_version(request: object, replica: NamingReplica) -> TypeGuard[UpdateFeaturesRequest]:
    """Return whether a request is to raise the version of a quorum whose log names no voters, or asks if it could."""
    return (
        isinstance(request, UpdateFeaturesRequest)
        and replica.voters is None
        and any(each.feature == KRAFT_VERSION and each.max_version_level > 0 for each in request.feature_updates)
    )


async def update_features(
    request: UpdateFeaturesRequest, controller: ControllerCalls, replica: NamingReplica, image: MetadataImage
) -> Any:
    """Have the log name the voters, where all else that is asked for can be, and finalize the features then.

    What is asked with `validate_only` is answered as it would be, the election asked too, and nobody is named.

    Cancelled: the voters may be named, and the features finalized.

    Args:
        request: What is asked for.
        controller: The active one.
        replica: Leads.
        image: What is committed.

    Raises:
        KafkaError: NOT_CONTROLLER: the lead is lost; what was asked for may be done.
    """
    trial = copy.copy(request)
    trial.validate_only = True
    checked = await controller.ask(trial)
    if checked.error_code != ErrorCode.NONE:
        return checked
    voters = registered_voters(image)
    asked = TriedVoters(version=voters.version, voters=voters.voters) if request.validate_only else voters
    named: Any = await replica.ask(-1, asked)
    if named.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, named.error_message)
    if named.error_code != ErrorCode.NONE:
        return UpdateFeaturesResponse(error_code=named.error_code, error_message=f"{FAILED}{named.error_message}")
    return checked if request.validate_only else await controller.ask(request)


def registered_voters(image: MetadataImage) -> KRaftVoters:
    """Return what registered controllers would be as voters; of their directories registrations say nothing."""
    return KRaftVoters(
        version=0,
        voters=[
            KRaftVoter(
                voter_id=node_id,
                endpoints=[
                    VoterEndpoint(name=each.name, host=each.host, port=each.port) for each in known.listeners.values()
                ],
                k_raft_version_feature=_range(known.features.get(KRAFT_VERSION, NOT_SUPPORTED)),
            )
            for node_id, known in sorted(image.controllers.items())
        ],
    )


def _range(levels: tuple[int, int]) -> KRaftVersionRange:
    return KRaftVersionRange(min_supported_version=levels[0], max_supported_version=levels[1])
