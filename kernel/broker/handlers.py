"""Shell: the table of all API handlers of the kernel, each with the parts it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from ..dispatch.handlers.api_61_describe_producers import DescribeProducersHandler
from ..dispatch.security_handlers import security_handlers
from ..metadata.features import supported_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..contracts.api_handler import ApiHandler, AsyncApiHandler
    from .parts import BrokerParts


def kernel_handlers(parts: BrokerParts) -> Iterator[ApiHandler | AsyncApiHandler]:
    """Iterate over the handlers of every API that the kernel answers itself."""
    config, clock, image = parts.config, parts.broker.clock, parts.image
    yield parts.produce
    yield FetchHandler(
        replicas=parts.replicas,
        sessions=parts.sessions,
        purgatory=parts.fetch_purgatory,
        clock=clock,
        cold_wait_ms=lambda: parts.live_config.get_int("remote.fetch.max.wait.ms"),
        max_bytes=config.get_int("fetch.max.bytes"),
    )
    yield ListOffsetsHandler(
        replicas=parts.replicas,
        cold_timeout_ms=lambda: parts.live_config.get_int("remote.list.offsets.request.timeout.ms"),
        threads=parts.broker.machine.threads,
    )
    yield MetadataHandler(
        broker_id=config.node_id,
        image=image,
        may_create_topics=lambda: parts.live_config.get_bool("auto.create.topics.enable"),
        create_topics=parts.topic_maker.create_soon,
        internal_topics=parts.replicas.internal_topics,
    )
    if parts.coordinators.by_key_type:
        yield FindCoordinatorHandler(
            runtimes=parts.coordinators.by_key_type, image=image, create_topics=parts.topic_maker.create_soon
        )
    yield ApiVersionsHandler(routes=parts.router.routes, image=image, supported_features=supported_ranges())
    yield WriteTxnMarkersHandler(writer=parts.marker_writer)
    yield from _log_handlers(parts)
    yield from security_handlers()
    yield from admin_handlers(
        broker_id=config.node_id,
        metadata=lambda: parts.metadata,
        config=lambda: parts.live_config,
        clock=clock,
        producer_ids=parts.producer_ids,
        transactions=lambda: parts.transactions,
        internal_topics=parts.replicas.internal_topics,
    )


def _log_handlers(parts: BrokerParts) -> Iterator[ApiHandler | AsyncApiHandler]:
    """Iterate over the handlers of what is asked about the logs of this broker."""

    def may_lose_records(topic: str) -> bool:
        image = parts.image()
        policies = TopicConfig.resolve(parts.live_config, image.topic_config(topic)).cleanup_policy
        return not policies or "delete" in policies

    yield DeleteRecordsHandler(replicas=parts.replicas, may_lose_records=may_lose_records)
    yield OffsetForLeaderEpochHandler(replicas=parts.replicas)
    yield AlterReplicaLogDirsHandler(replicas=parts.replicas, moves=parts.log_moves)
    yield DescribeLogDirsHandler(replicas=parts.replicas)
    yield DescribeProducersHandler(replicas=parts.replicas)
