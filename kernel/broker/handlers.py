"""Shell: the tables of the kernel's API handlers, each with the parts it is given."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..config.listeners import parse_controller_listeners
from ..config.topic import TopicConfig
from ..dispatch.admin_handlers import admin_handlers
from ..dispatch.handlers.api_03_metadata import MetadataHandler
from ..dispatch.handlers.api_18_api_versions import ApiVersionsHandler
from ..dispatch.made_handlers import make_handler
from ..dispatch.security_handlers import SECURITY_APIS
from ..metadata.features import supported_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..contracts.api_handler import ApiHandler, AsyncApiHandler
    from ..dispatch.made_handlers import Given
    from ..metadata.image import MetadataImage
    from .parts import BrokerParts


def first_handlers(parts: BrokerParts) -> Iterator[ApiHandler | AsyncApiHandler]:
    """Iterate over the handlers of what every client asks first, and of Produce, which takes part in turns."""
    config, published, requests = parts.options.config, parts.published, parts.requests
    yield requests.produce
    yield MetadataHandler(
        broker_id=config.node_id,
        image=_image(parts),
        may_create_topics=lambda: published.config.get_bool("auto.create.topics.enable"),
        create_topics=requests.topic_maker.create_soon,
        internal_topics=parts.logs.replicas.internal_topics,
        lost_brokers=lambda: published.lost_brokers(parts.machine.clock.monotonic_ms()),
    )
    yield ApiVersionsHandler(
        routes=requests.router.routes, image=_image(parts), supported_features=supported_ranges(config)
    )


def later_handlers(parts: BrokerParts) -> Iterator[tuple[int, Callable[[], ApiHandler | AsyncApiHandler]]]:
    """Iterate over all other APIs that the kernel answers itself, each with what makes its handler."""
    published, requests, replication = parts.published, parts.requests, parts.events.replication
    admin = admin_handlers(
        broker_id=parts.options.config.node_id,
        calls=parts.metadata.calls,
        image=_image(parts),
        config=lambda: published.config,
        producer_ids=requests.producer_ids,
        transactions=lambda: requests.transactions,
        internal_topics=parts.logs.replicas.internal_topics,
        hand_overs=replication.hand_overs if replication is not None else None,
    )
    nothing: dict[int, Given] = {api_key: {} for api_key in SECURITY_APIS}
    for api_key, given in {**_record_handlers(parts), **_log_handlers(parts), **admin, **nothing}.items():
        yield api_key, partial(make_handler, api_key, given)
    yield 55, _quorum_maker(parts)
    if replication is not None:
        from ..dispatch.partition_votes import votes_handlers  # a broker alone does not pay for it

        yield from votes_handlers(
            replication, _quorum_maker(parts), parts.logs.replicas, parts.machine.clock, _image(parts)
        )


def _image(parts: BrokerParts) -> Callable[[], MetadataImage]:
    published = parts.published
    return lambda: published.image


def _record_handlers(parts: BrokerParts) -> dict[int, Given]:
    """Return what handlers are given of what is asked by who reads records, and who coordinates them."""
    published, requests, replicas, clock = parts.published, parts.requests, parts.logs.replicas, parts.machine.clock
    table: dict[int, Given] = {
        1: {
            "replicas": replicas,
            "sessions": requests.sessions,
            "purgatory": requests.waiting.fetch,
            "clock": clock,
            "cold_wait_ms": lambda: published.config.get_int("remote.fetch.max.wait.ms"),
            "max_bytes": parts.options.config.get_int("fetch.max.bytes"),
            "broker": published.broker,
            "leaders": requests.produce.leaders,
            "quota": None if (copying := parts.events.replication) is None else copying.leader_quota,
            "traffic": None if copying is None else copying.traffic,
        },
        2: {
            "replicas": replicas,
            "cold_timeout_ms": lambda: published.config.get_int("remote.list.offsets.request.timeout.ms"),
            "threads": parts.machine.threads,
        },
        27: {"writer": requests.local_markers},
    }
    if requests.coordinators.by_key_type:
        table[10] = {
            "runtimes": requests.coordinators.by_key_type,
            "image": _image(parts),
            "create_topics": requests.topic_maker.create_soon,
        }
    return table


def _quorum_maker(parts: BrokerParts) -> Callable[[], ApiHandler | AsyncApiHandler]:
    """Return what makes who tells of the metadata quorum, here or at the controller of another node."""
    metadata, config = parts.metadata, parts.options.config
    if not metadata.roles.is_controller or metadata.roles.is_among_several:
        return partial(make_handler, 55, {"calls": metadata.calls}, "ForwardedQuorumHandler")
    given: Given = {
        "broker_id": config.node_id,
        "metadata": lambda: metadata.calls.kept().source,
        "clock": parts.machine.clock,
        "observers": metadata.observers,
        "listeners": [(each.name, each.host, each.port) for each in parse_controller_listeners(config)],
    }
    return partial(make_handler, 55, given)


def _log_handlers(parts: BrokerParts) -> dict[int, Given]:
    """Return what handlers are given of what is asked about the logs of this broker."""
    published, replicas = parts.published, parts.logs.replicas

    def may_lose_records(topic: str) -> bool:
        policies = TopicConfig.resolve(published.config, published.image.topic_config(topic)).cleanup_policy
        return not policies or "delete" in policies

    return {
        21: {
            "replicas": replicas,
            "may_lose_records": may_lose_records,
            "purgatory": parts.requests.waiting.produce,
            "clock": parts.machine.clock,
            "writes": parts.logs.writes,
        },
        23: {"replicas": replicas},
        34: {"replicas": replicas, "moves": parts.logs.log_moves, "is_cordoned": published.is_cordoned},
        35: {"replicas": replicas, "is_cordoned": published.is_cordoned},
        61: {"replicas": replicas},
    }
