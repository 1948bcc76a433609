"""Shell: the table of all API handlers of the kernel, each with the parts it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..config.listeners import parse_controller_listeners
from ..config.topic import TopicConfig
from ..dispatch.admin_handlers import admin_handlers
from ..dispatch.handlers.api_01_fetch import FetchHandler
from ..dispatch.handlers.api_02_list_offsets import ListOffsetsHandler
from ..dispatch.handlers.api_03_metadata import MetadataHandler
from ..dispatch.handlers.api_10_find_coordinator import FindCoordinatorHandler
from ..dispatch.handlers.api_18_api_versions import ApiVersionsHandler
from ..dispatch.handlers.api_21_delete_records import DeleteRecordsHandler
from ..dispatch.handlers.api_23_offset_for_leader_epoch import OffsetForLeaderEpochHandler
from ..dispatch.handlers.api_27_write_txn_markers import WriteTxnMarkersHandler
from ..dispatch.handlers.api_34_alter_replica_log_dirs import AlterReplicaLogDirsHandler
from ..dispatch.handlers.api_35_describe_log_dirs import DescribeLogDirsHandler
from ..dispatch.handlers.api_55_describe_quorum import DescribeQuorumHandler, ForwardedQuorumHandler
from ..dispatch.handlers.api_61_describe_producers import DescribeProducersHandler
from ..dispatch.security_handlers import security_handlers
from ..metadata.features import supported_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..contracts.api_handler import ApiHandler, AsyncApiHandler
    from ..metadata.image import MetadataImage
    from .parts import BrokerParts


def kernel_handlers(parts: BrokerParts) -> Iterator[ApiHandler | AsyncApiHandler]:
    """Iterate over the handlers of every API that the kernel answers itself."""
    config, clock, published = parts.options.config, parts.machine.clock, parts.published
    requests, replicas = parts.requests, parts.logs.replicas

    def image() -> MetadataImage:
        return published.image

    yield requests.produce
    yield FetchHandler(
        replicas=replicas,
        sessions=requests.sessions,
        purgatory=requests.waiting.fetch,
        clock=clock,
        cold_wait_ms=lambda: published.config.get_int("remote.fetch.max.wait.ms"),
        max_bytes=config.get_int("fetch.max.bytes"),
        broker=published.broker,
        leaders=requests.produce.leaders,
    )
    yield ListOffsetsHandler(
        replicas=replicas,
        cold_timeout_ms=lambda: published.config.get_int("remote.list.offsets.request.timeout.ms"),
        threads=parts.machine.threads,
    )
    yield MetadataHandler(
        broker_id=config.node_id,
        image=image,
        may_create_topics=lambda: published.config.get_bool("auto.create.topics.enable"),
        create_topics=requests.topic_maker.create_soon,
        internal_topics=replicas.internal_topics,
    )
    if requests.coordinators.by_key_type:
        yield FindCoordinatorHandler(
            runtimes=requests.coordinators.by_key_type, image=image, create_topics=requests.topic_maker.create_soon
        )
    yield ApiVersionsHandler(routes=requests.router.routes, image=image, supported_features=supported_ranges(config))
    yield WriteTxnMarkersHandler(writer=requests.local_markers)
    yield from _log_handlers(parts)
    yield from security_handlers()
    yield _quorum_handler(parts)
    yield from admin_handlers(
        broker_id=config.node_id,
        calls=parts.metadata.calls,
        image=image,
        config=lambda: published.config,
        producer_ids=requests.producer_ids,
        transactions=lambda: requests.transactions,
        internal_topics=replicas.internal_topics,
    )


def _quorum_handler(parts: BrokerParts) -> ApiHandler | AsyncApiHandler:
    """Return what tells of the metadata quorum, here or at the controller of another node."""
    metadata, config = parts.metadata, parts.options.config
    if not metadata.roles.is_controller:
        return ForwardedQuorumHandler(calls=metadata.calls)
    return DescribeQuorumHandler(
        broker_id=config.node_id,
        metadata=metadata.calls.opened,
        clock=parts.machine.clock,
        observers=lambda: metadata.serving.feed.observers if metadata.roles.serves_controller else {},
        listeners=[(each.name, each.host, each.port) for each in parse_controller_listeners(config)],
    )


def _log_handlers(parts: BrokerParts) -> Iterator[ApiHandler | AsyncApiHandler]:
    """Iterate over the handlers of what is asked about the logs of this broker."""
    published, replicas = parts.published, parts.logs.replicas

    def may_lose_records(topic: str) -> bool:
        configs = published.image.topic_config(topic)
        policies = TopicConfig.resolve(published.config, configs).cleanup_policy
        return not policies or "delete" in policies

    yield DeleteRecordsHandler(
        replicas=replicas,
        may_lose_records=may_lose_records,
        purgatory=parts.requests.waiting.produce,
        clock=parts.machine.clock,
    )
    yield OffsetForLeaderEpochHandler(replicas=replicas)
    yield AlterReplicaLogDirsHandler(replicas=replicas, moves=parts.logs.log_moves)
    yield DescribeLogDirsHandler(replicas=replicas)
    yield DescribeProducersHandler(replicas=replicas)
