"""Pure core: what brokers ask of the controller for themselves: registration and heartbeats.

A heartbeat moves a broker from state to state; each state is what the metadata says of it::

    fenced --caught up--> live --wants to stop--> in controlled shutdown --leads nothing--> fenced, may end
       ^                   |
       +---wants a fence---+--- or its session is over

Directories of it that failed, and those that are cordoned, are told by each heartbeat, and taken note of once
(KIP-858, KIP-1066).

A registration without listeners takes an id, and nothing else: of brokers that ask for one id together the first whose
record is written has it, and the others are told that it is taken (`cluster/introduction.py` asks).

*Source:* KIP-631; Kafka's `ClusterControlManager.registerBroker`, `BrokerHeartbeatManager.calculateNextBrokerState`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ..contracts.coordinator import CoordinatorResult
from ..errors import ErrorCode, KafkaError
from ..metadata.image import BrokerEndpoint, ResourceType
from ..wire.messages.api_62_broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ..wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from .brokers import Registration, change_broker, find_broker, register_broker
from .directory_changes import directories_cordoned, directories_failed
from .partition_walks import has_replicas, leads_any

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..metadata.image import BrokerImage, MetadataImage
    from .broker_sessions import BrokerSessions
    from .rules import ControllerRules, Steps


class _State(Enum):
    FENCED = "fenced"
    LIVE = "live"
    STOPPING = "in controlled shutdown"
    STOPPED = "may end"


def broker_registration(
    image: MetadataImage, rules: ControllerRules, request: BrokerRegistrationRequest
) -> Steps[BrokerRegistrationResponse]:
    """Register a broker that begins, fenced; the same process asked again gets the same answer.

    Raises:
        KafkaError: INCONSISTENT_CLUSTER_ID: it is another cluster's. DUPLICATE_BROKER_REGISTRATION: another process
            with this id is alive; this node always is; or the id that it asks for is taken. INVALID_REGISTRATION: it
            asks for a thing of the past, or its id is none.
    """
    if request.cluster_id != image.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {image.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    _check_registration(rules, request)
    known = image.brokers.get(request.broker_id)
    if known is not None and known.incarnation_id == request.incarnation_id:
        if request.listeners:
            rules.sessions.touch(known.broker_id, known.broker_epoch)
        return CoordinatorResult((), BrokerRegistrationResponse(broker_epoch=known.broker_epoch))
    if not request.listeners:
        yield from _check_is_free(image, request.broker_id)
    result = yield from register_broker(image, rules, _registration(request))
    rules.sessions.forget(request.broker_id)
    if request.listeners:  # who has only taken an id is in nobody's way: whoever comes with it next is the broker
        rules.sessions.touch(request.broker_id, result.response)
    return CoordinatorResult(result.records, BrokerRegistrationResponse(broker_epoch=result.response))


def _registration(request: BrokerRegistrationRequest) -> Registration:
    return Registration(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        listeners=[
            BrokerEndpoint(item.name, item.host, item.port, item.security_protocol) for item in request.listeners
        ],
        log_dirs=request.log_dirs,
        rack=request.rack,
        features={item.name: (item.min_supported_version, item.max_supported_version) for item in request.features},
        previous_broker_epoch=request.previous_broker_epoch,
    )


def _check_is_free(image: MetadataImage, broker_id: int) -> Generator[None, None, None]:
    """See that nothing is left of a node that had an id: it would become the newcomer's.

    Raises:
        KafkaError: DUPLICATE_BROKER_REGISTRATION: a node has it, or replicas are assigned to it, or it is configured.
    """
    is_taken = broker_id in image.brokers or broker_id in image.controllers
    is_taken = is_taken or bool(image.config(ResourceType.BROKER, str(broker_id)))
    if is_taken or (yield from has_replicas(image, broker_id)):
        raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, f"broker id {broker_id} is taken")


def _check_registration(rules: ControllerRules, request: BrokerRegistrationRequest) -> None:
    if request.broker_id < 0:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, f"{request.broker_id} is no id of a broker")
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "a broker registers with KRaft alone")
    if rules.is_own(request.broker_id):
        # This node registers without a request: by one it could only be another process.
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION, f"{request.broker_id} is the id of this controller's own node"
        )


def broker_heartbeat(
    image: MetadataImage, rules: ControllerRules, request: BrokerHeartbeatRequest
) -> Steps[BrokerHeartbeatResponse]:
    """Take note that a broker lives, and let it go on to its next state.

    Raises:
        KafkaError: STALE_BROKER_EPOCH: see `find_broker`; also for this controller's own node, which has no session:
            nobody would renew it.
    """
    broker = find_broker(image, request.broker_id, request.broker_epoch)
    if rules.is_own(broker.broker_id):
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"{broker.broker_id} is this controller's own node, which sends no heartbeats"
        )
    sessions = rules.sessions
    sessions.touch(broker.broker_id, broker.broker_epoch)
    sessions.note_offset(broker.broker_id, request.current_metadata_offset)
    state = _state_of(broker)
    # One thing at a time: the state that it wants it goes on to with its next heartbeat.
    records = yield from directories_failed(image, rules, broker, request.offline_log_dirs)
    records = records or directories_cordoned(image, broker, request.cordoned_log_dirs)
    wanted = state if records else (yield from _next_state(image, sessions, broker, request))
    if wanted is not state:
        change = yield from change_broker(
            image,
            rules,
            broker.broker_id,
            broker.broker_epoch,
            fence=wanted in {_State.FENCED, _State.STOPPED},
            shutdown=wanted in {_State.STOPPING, _State.STOPPED},
        )
        records = list(change.records)
    if wanted is _State.STOPPED:
        sessions.forget(broker.broker_id)  # it may begin again at once
    if wanted is _State.STOPPING and (state is not wanted or not sessions.knows_shutdown(broker.broker_id)):
        sessions.note_shutdown(broker.broker_id, image.offset + len(records))
    answer = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= broker.broker_epoch,
        is_fenced=wanted in {_State.FENCED, _State.STOPPED},
        should_shut_down=wanted is _State.STOPPED,
    )
    return CoordinatorResult(records, answer)


def _state_of(broker: BrokerImage) -> _State:
    if broker.is_fenced:
        return _State.STOPPED if broker.in_controlled_shutdown else _State.FENCED
    return _State.STOPPING if broker.in_controlled_shutdown else _State.LIVE


def _next_state(
    image: MetadataImage, sessions: BrokerSessions, broker: BrokerImage, request: BrokerHeartbeatRequest
) -> Generator[None, None, _State]:
    state = _state_of(broker)
    if state in {_State.FENCED, _State.STOPPED}:
        if request.want_shut_down:
            return _State.STOPPED
        is_caught_up = request.current_metadata_offset >= broker.broker_epoch
        may_live = state is _State.FENCED and is_caught_up and not request.want_fence
        return _State.LIVE if may_live else state
    if state is _State.LIVE and request.want_fence:
        return _State.STOPPED if request.want_shut_down else _State.FENCED
    if state is _State.LIVE and not request.want_shut_down:
        return _State.LIVE
    if state is _State.LIVE:
        return _State.STOPPING
    others = [each.broker_id for each in image.brokers.values() if not each.is_fenced and each is not broker]
    # Who does not know yet who leads instead would send clients to a broker that is gone. It is asked first, as what
    # a broker leads is looked for among all partitions, and a broker that waits asks again soon. A controller that
    # began after the broker did does not know either what the others have to know: it waits for all that is so now.
    if not sessions.knows_shutdown(broker.broker_id):
        return _State.STOPPING
    if not sessions.follows(others, sessions.shutdown_offset(broker.broker_id)):
        return _State.STOPPING
    return _State.STOPPING if (yield from leads_any(image, broker.broker_id)) else _State.STOPPED


def fence_dead(image: MetadataImage, rules: ControllerRules, broker_id: int, broker_epoch: int) -> Steps[bool]:
    """Fence a broker whose process is known to be gone; the response is whether it was that one, and not fenced yet."""
    known = image.brokers.get(broker_id)
    if known is None or known.broker_epoch != broker_epoch or not rules.sessions.is_gone(broker_id, broker_epoch):
        return CoordinatorResult((), False)
    rules.sessions.forget(broker_id)
    result = yield from change_broker(image, rules, broker_id, broker_epoch, fence=True, shutdown=False)
    return CoordinatorResult(result.records, not known.is_fenced)


def fence_overdue(image: MetadataImage, rules: ControllerRules) -> Steps[list[int]]:
    """Fence the first broker whose session is over; the response is the ids of all that are overdue."""
    overdue = rules.sessions.overdue(image)
    if not overdue:
        return CoordinatorResult((), [])
    first = overdue[0]
    result = yield from change_broker(image, rules, first.broker_id, first.broker_epoch, fence=True, shutdown=False)
    rules.sessions.forget(first.broker_id)
    return CoordinatorResult(result.records, [broker.broker_id for broker in overdue])
