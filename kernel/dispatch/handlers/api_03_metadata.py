"""Shell: Metadata (key 3): the brokers and topics of the cluster, as committed; makes topics that are asked for.

A topic that does not exist is created when the client allows it and `auto.create.topics.enable` does; this answer still
says UNKNOWN_TOPIC_OR_PARTITION, the client asks again.

*Source:* KIP-4, KIP-204 (creation), KIP-430 (operations), KIP-516 (ids), KIP-1102 (error code).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...contracts.pieces import ListPieces, are_many
from ...errors import ErrorCode, KafkaError
from ...machine.turnstile import run_in_slices
from ...metadata.names import is_valid_topic_name
from ...types import ZERO_ID
from ...wire.messages.api_03_metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ..broker_nodes import BrokerNodes
from ..stepped_handler import SteppedHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Set

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.election import PartitionState
    from ...metadata.image import BrokerEndpoint, BrokerImage, MetadataImage, TopicImage
    from ...wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic
    from ..kept_topics import KeptTopics

FIRST_VERSION_WITH_EMPTY_LIST: Final = 1
"""Before it, an empty list of topics meant all of them."""
FIRST_VERSION_WITH_CREATION_FLAG: Final = 4
FIRST_VERSION_WITH_IDS: Final = 12
NO_OPERATIONS: Final = -(1 << 31)
"""What the authorized operations hold when nobody asked for them."""
TOPIC_OPERATIONS: Final = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Read, write, create, delete, alter, describe, describe and alter configs: all, as there is no authorizer."""
CLUSTER_OPERATIONS: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""Create, alter, describe, cluster action, describe and alter configs, idempotent write."""


class MetadataHandler(SteppedHandler):
    """Answers Metadata from the current image."""

    api_key = 3
    pieces = ListPieces("topics", answers=["topics"], items_max=50, together="name topic_id", once=True)

    def __init__(
        self,
        *,
        broker_id: int,
        image: Callable[[], MetadataImage],
        may_create_topics: Callable[[], bool],
        create_topics: Callable[[list[str]], None],
        internal_topics: Set[str],
        lost_brokers: Callable[[], Iterable[BrokerImage]],
    ) -> None:
        """Make the handler.

        Args:
            broker_id: This broker.
            image: The current image.
            may_create_topics: `auto.create.topics.enable`.
            create_topics: Asks the controller for topics of these names, with defaults; does not wait.
            internal_topics: To which no client writes.
            lost_brokers: Fenced ones that are told all the same, see `PublishedImage.lost_brokers`.
        """
        self._lost_brokers = lost_brokers
        self._broker_id = broker_id
        self._image = image
        self._may_create_topics = may_create_topics
        self._create_topics = create_topics
        self._internal_topics = internal_topics
        self._kept: KeptTopics | None = None

    def is_long(self, request: MetadataRequest, context: RequestContext) -> bool:
        """Return whether the topics asked for, or all, have many partitions."""
        image = self._image()
        if _asks_for_all(request, context.api_version):
            return are_many(len(topic.partitions) for topic in image.topics_by_name.values())
        return are_many(_partitions_count(image, wanted) for wanted in request.topics or ())

    async def handle_async(self, request: MetadataRequest, context: RequestContext) -> Answer:
        """Answer what is long: all topics as they were encoded before. Cancelled: nobody waits for it any more."""
        return await run_in_slices(self.answer_in_steps(request, context, keeps=True))

    def answer_in_steps(
        self, request: MetadataRequest, context: RequestContext, *, keeps: bool = False
    ) -> Generator[None, None, MetadataResponse]:
        """Answer with the topics asked for, or all; kept ones are encoded, and what has them is encoded in steps."""
        image = self._image()
        version = context.api_version
        nodes = BrokerNodes(image, context.connection.listener_name)
        operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NO_OPERATIONS
        wanted_topics = request.topics or []
        if _asks_for_all(request, version):
            make = partial(self._topic, nodes=nodes, operations=operations, version=version)
            if keeps:
                if self._kept is None:
                    from ..kept_topics import KeptTopics  # a broker with few partitions does not pay for it

                    self._kept = KeptTopics()
                others = (context.connection.listener_name, operations)
                topics: list[Any] = yield from self._kept.all_in_steps(image, version, others, make)
            else:
                topics = []
                for topic in image.topics_by_name.values():
                    topics.append((yield from make(topic)))
                    yield
        elif any(wanted.topic_id != ZERO_ID or wanted.name is None for wanted in wanted_topics):
            topics = yield from self._topics_by_id(wanted_topics, image, nodes, operations, version)
        else:
            names = dict.fromkeys(wanted.name or "" for wanted in wanted_topics)
            may_create = version < FIRST_VERSION_WITH_CREATION_FLAG or request.allow_auto_topic_creation
            topics = yield from self._topics_by_name(names, image, nodes, operations, version, may_create=may_create)
        return MetadataResponse(
            brokers=_brokers((*nodes.by_id.values(), *nodes.found_of(self._lost_brokers()))),
            cluster_id=image.cluster_id,
            controller_id=nodes.controller(self._broker_id),
            topics=topics,
            cluster_authorized_operations=(
                CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS
            ),
        )

    def _topics_by_name(
        self,
        names: Iterable[str],
        image: MetadataImage,
        nodes: BrokerNodes,
        operations: int,
        version: int,
        *,
        may_create: bool,
    ) -> Generator[None, None, list[MetadataResponseTopic]]:
        """Return the topics that exist, in the order asked, then the others."""
        known: list[MetadataResponseTopic] = []
        unknown: list[MetadataResponseTopic] = []
        missing: list[str] = []
        for name in names:
            topic = image.topics_by_name.get(name)
            if topic is not None:
                known.append((yield from self._topic(topic, nodes, operations, version)))
            else:
                unknown.append(self._missing_topic(name, missing, operations, may_create=may_create))
        if missing:
            self._create_topics(missing)
        return known + unknown

    def _missing_topic(
        self, name: str, missing: list[str], operations: int, *, may_create: bool
    ) -> MetadataResponseTopic:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not is_valid_topic_name(name):
            code = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif may_create and self._may_create_topics():
            missing.append(name)
        return MetadataResponseTopic(
            error_code=code,
            name=name,
            is_internal=name in self._internal_topics,
            topic_authorized_operations=operations,
        )

    def _topics_by_id(
        self,
        asked: Iterable[MetadataRequestTopic],
        image: MetadataImage,
        nodes: BrokerNodes,
        operations: int,
        version: int,
    ) -> Generator[None, None, list[MetadataResponseTopic]]:
        """Return the unknown ids, then the topics that exist; entries without an id are not looked at.

        Raises:
            KafkaError: Versions 10 and 11 know the field but refuse its use; no entry has an id and one has no name
                either, which Kafka meets with UNKNOWN_SERVER_ERROR.
        """
        if version < FIRST_VERSION_WITH_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        known: list[MetadataResponseTopic] = []
        unknown: list[MetadataResponseTopic] = []
        ids = dict.fromkeys(wanted.topic_id for wanted in asked if wanted.topic_id != ZERO_ID)
        if not ids:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        for topic_id in ids:
            topic = image.topics_by_id.get(topic_id)
            if topic is not None:
                known.append((yield from self._topic(topic, nodes, operations, version)))
            else:
                unknown.append(
                    MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
                )
        return unknown + known

    def _topic(
        self, topic: TopicImage, nodes: BrokerNodes, operations: int, version: int
    ) -> Generator[None, None, MetadataResponseTopic]:
        partitions = []
        for index, state in enumerate(topic.partitions):
            partitions.append(_partition(index, state, nodes, version))
            yield
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in self._internal_topics,
            partitions=partitions,
            topic_authorized_operations=operations,
        )

    def error_response(self, request: MetadataRequest, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that gives every topic this error."""
        return MetadataResponse(
            error_code=code,
            topics=[
                MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
                for topic in request.topics or ()
            ],
        )


def _asks_for_all(request: MetadataRequest, version: int) -> bool:
    return request.topics is None or (not request.topics and version < FIRST_VERSION_WITH_EMPTY_LIST)


def _partitions_count(image: MetadataImage, wanted: MetadataRequestTopic) -> int:
    topic = image.topics_by_name.get(wanted.name or "") or image.topics_by_id.get(wanted.topic_id)
    return 0 if topic is None else len(topic.partitions)


def _brokers(found: Iterable[tuple[BrokerImage, BrokerEndpoint]]) -> list[MetadataResponseBroker]:
    return [
        MetadataResponseBroker(node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
        for broker, endpoint in found
    ]


def _partition(index: int, state: PartitionState, nodes: BrokerNodes, version: int) -> MetadataResponsePartition:
    leader, replicas, isr = state.leader, list(state.replicas), list(state.isr)
    error = ErrorCode.NONE if leader in nodes.by_id else nodes.leader_error(leader, version)
    if version == 0:  # it has no offline replicas: who cannot be reached is left out
        replicas = [replica for replica in replicas if replica in nodes.by_id]
        isr = [replica for replica in isr if replica in nodes.by_id]
        is_whole = len(replicas) == len(state.replicas) and len(isr) == len(state.isr)
        error = error if error or is_whole else ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=nodes.leader(leader),
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=nodes.offline(state.replicas),
    )
