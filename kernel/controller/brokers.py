"""Pure core: brokers come and go: registration, fencing, controlled shutdown, unregistration; blocks of producer ids.

*Source:* KIP-631 (registration, fencing), KIP-730 (producer ids); Kafka's `ClusterControlManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..classes import frozen
from ..contracts.coordinator import CoordinatorResult
from ..contracts.election import ElectionReason
from ..errors import ErrorCode, KafkaError
from ..metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    supported_features,
)
from ..metadata.image import BrokerEndpoint, BrokerImage
from ..metadata.record_makers import broker_record
from ..metadata.records import FORMAT_VERSION, FeatureRecord, FormatRecord, ProducerIdsRecord, RemoveBrokerRecord
from ..wire.messages.api_64_unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ..wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from .eligible_replicas import switched_on
from .image_checks import check_registered_features
from .partition_changes import broker_back, broker_gone
from .partition_states import has_eligible_replicas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules, Steps

PRODUCER_IDS_BLOCK: Final = 1000
"""How many producer ids a broker is given at a time (KIP-730)."""


@frozen
class Registration:
    """What a broker says of itself when it starts.

    Attributes:
        broker_id: Its `node.id`.
        incarnation_id: Made anew by every process.
        listeners: With advertised addresses; none of who takes an id before it knows them.
        log_dirs: Ids of its working log directories.
        rack: `broker.rack`, None when not set.
        is_fenced: False for a broker that is ready at once: the one that is its own controller.
        features: What it supports: name to (lowest, highest) level; what it does not name it has at level 0 only.
        previous_broker_epoch: Of the registration before, when it stopped cleanly; -1 when not, or when there was none.
    """

    broker_id: int
    incarnation_id: UUID
    listeners: Sequence[BrokerEndpoint]
    log_dirs: Sequence[UUID] = ()
    rack: str | None = None
    is_fenced: bool = True
    features: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    previous_broker_epoch: int = -1


def format_log(
    image: MetadataImage, rules: ControllerRules, cluster_id: str, features: Mapping[str, int]
) -> CoordinatorResult[MetadataRecord, None]:
    """Write what an empty log begins with; on a log that has it, finalize features whose part was not there before.

    Args:
        image: The image as loaded.
        rules: The controller's collaborators.
        cluster_id: For a new log.
        features: Where a new log is to have other levels than by default, by name.
    """
    records: list[MetadataRecord] = []
    wanted: Mapping[str, int] = {}
    if image.format_version == 0:
        records.append(FormatRecord(format_version=FORMAT_VERSION, cluster_id=cluster_id))
        wanted = features
    known = {**image.features, **wanted}
    records += [FeatureRecord(name=name, level=level) for name, level in wanted.items()]
    records += [
        FeatureRecord(name=feature.name, level=feature.level_new)
        for feature in supported_features(rules.config)
        if feature.level_new > 0
        and feature.name not in known
        and feature.name not in image.disabled_features
        and feature.depends_on <= known.get(METADATA_VERSION, feature.depends_on)
    ]
    if any(isinstance(record, FeatureRecord) and record.name == ELIGIBLE_LEADER_REPLICAS_VERSION for record in records):
        records += switched_on(image, rules.config)
    return CoordinatorResult(records, None)


def register_broker(image: MetadataImage, rules: ControllerRules, registration: Registration) -> Steps[int]:
    """Register a broker; the response is its broker epoch.

    Raises:
        KafkaError: DUPLICATE_BROKER_REGISTRATION: another process with this id is registered and not fenced, and is not
            this controller's own node, whose earlier process cannot be alive.
            UNSUPPORTED_VERSION: it does not support a feature at its finalized level: it could not read the metadata.
    """
    check_registered_features(image, "broker", registration.features)
    known = image.brokers.get(registration.broker_id)
    restarted = known is not None and known.incarnation_id != registration.incarnation_id
    if (
        known is not None
        and restarted
        and not rules.is_own(registration.broker_id)
        and _may_live(known, rules, registration)
    ):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another broker is registered with that broker id. If the broker {registration.broker_id} was restarted, "
            "wait until its session is over.",
        )
    epoch = image.offset + 1
    broker = BrokerImage(
        registration.broker_id,
        epoch,
        registration.incarnation_id,
        {listener.name: listener for listener in registration.listeners},
        registration.rack,
        tuple(registration.log_dirs),
        registration.is_fenced,
        in_controlled_shutdown=False,
        features=dict(registration.features),
        # Until it says itself what is: mostly it goes on as it was.
        cordoned_log_dirs=known.cordoned_log_dirs if known is not None else (),
    )
    records: list[MetadataRecord] = [broker_record(broker)]
    may_have_lost = _may_have_lost(known, registration)
    if not registration.is_fenced:
        # The controller's own, which nobody fenced while it was away: it leads still, whatever the features are.
        records += yield from broker_back(
            attrs.evolve(image, brokers={**image.brokers, broker.broker_id: broker}),
            rules,
            broker.broker_id,
            restarted=restarted or known is None,
            may_have_lost=may_have_lost,
        )
    elif may_have_lost and has_eligible_replicas(image):
        records += yield from broker_gone(image, rules, broker.broker_id, ElectionReason.OFFLINE, may_have_lost=True)
    elif known is not None and known.is_live:
        records += yield from broker_gone(image, rules, broker.broker_id, ElectionReason.OFFLINE)
    return CoordinatorResult(records, epoch)


def _may_have_lost(known: BrokerImage | None, registration: Registration) -> bool:
    """Return whether a broker that begins may lack records that it had: nobody saw that it stopped cleanly."""
    if known is None:
        return True
    is_another = known.incarnation_id != registration.incarnation_id
    return is_another and known.broker_epoch != registration.previous_broker_epoch


def _may_live(known: BrokerImage, rules: ControllerRules, new: Registration) -> bool:
    """Return whether the process of a registration may still be there; one that is not fenced may, until it is over.

    It is not where its connection has ended and another process listens where it did, or where an id was taken and
    nobody has come with it yet.
    """
    if not known.listeners:
        return False
    sessions = rules.sessions
    if sessions.is_gone(known.broker_id, known.broker_epoch) and {*new.listeners} == {*known.listeners.values()}:
        return False
    is_over = sessions.is_over(known.broker_id, known.broker_epoch)
    return sessions.is_valid(known.broker_id, known.broker_epoch) if known.is_fenced else not is_over


def find_broker(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerImage:
    """Return the broker whose registration has this epoch.

    Raises:
        KafkaError: STALE_BROKER_EPOCH: it is an earlier one; also where there is none, as in Kafka.
    """
    known = image.brokers.get(broker_id)
    if known is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if known.broker_epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"Expected broker epoch {broker_epoch}, but found {known.broker_epoch}"
        )
    return known


def change_broker(
    image: MetadataImage, rules: ControllerRules, broker_id: int, broker_epoch: int, *, fence: bool, shutdown: bool
) -> Steps[None]:
    """Fence or unfence a broker, or begin its controlled shutdown.

    Args:
        image: The current image.
        rules: The controller's collaborators.
        broker_id: The broker.
        broker_epoch: Of the registration that is meant.
        fence: Whether it is fenced from now on.
        shutdown: Whether it is in controlled shutdown from now on.

    Raises:
        KafkaError: STALE_BROKER_EPOCH: see `find_broker`.
    """
    known = find_broker(image, broker_id, broker_epoch)
    changed = attrs.evolve(known, is_fenced=fence, in_controlled_shutdown=shutdown)
    if changed == known:
        return CoordinatorResult((), None)
    records: list[MetadataRecord] = [broker_record(changed)]
    if known.is_live and not changed.is_live:
        reason = ElectionReason.CONTROLLED_SHUTDOWN if shutdown else ElectionReason.OFFLINE
        records += yield from broker_gone(image, rules, broker_id, reason)
    elif changed.is_live and not known.is_live:
        records += yield from broker_back(image, rules, broker_id, restarted=False)
    return CoordinatorResult(records, None)


def unregister_broker(
    image: MetadataImage, rules: ControllerRules, request: UnregisterBrokerRequest
) -> Steps[UnregisterBrokerResponse]:
    """Forget a broker; its replicas stay assigned, without a leader where it was the last in sync."""
    if request.broker_id not in image.brokers:
        return CoordinatorResult(
            (),
            UnregisterBrokerResponse(
                error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
                error_message=f"Broker ID {request.broker_id} is not currently registered",
            ),
        )
    records = yield from broker_gone(image, rules, request.broker_id, ElectionReason.OFFLINE)
    rules.sessions.forget(request.broker_id)
    records.append(RemoveBrokerRecord(broker_id=request.broker_id))
    return CoordinatorResult(records, UnregisterBrokerResponse(error_message=None))


def allocate_producer_ids(
    image: MetadataImage, rules: ControllerRules, request: AllocateProducerIdsRequest
) -> CoordinatorResult[MetadataRecord, AllocateProducerIdsResponse]:
    """Give a broker the next block of producer ids; ids of a block that a crash left unused are lost.

    Raises:
        KafkaError: STALE_BROKER_EPOCH: see `find_broker`.
    """
    broker, first = find_broker(image, request.broker_id, request.broker_epoch), image.next_producer_id
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=broker.broker_epoch,
        next_producer_id=first + PRODUCER_IDS_BLOCK,
    )
    answer = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=PRODUCER_IDS_BLOCK)
    return CoordinatorResult((record,), answer)


def reserve_producer_ids(image: MetadataImage, end: int) -> CoordinatorResult[MetadataRecord, None]:
    """Let no broker give out the producer ids below `end`: logs from elsewhere know producers of these ids."""
    if end <= image.next_producer_id:
        return CoordinatorResult((), None)
    return CoordinatorResult((ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=end),), None)
