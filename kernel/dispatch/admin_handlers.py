"""Pure core: what the handlers of the APIs that administer a cluster are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from ..config.broker import BrokerConfig
    from ..contracts.transactions import Transactions
    from ..metadata.controller_calls import ControllerCalls
    from ..metadata.image import MetadataImage
    from ..replication.hand_overs import HandOvers
    from .made_handlers import Given
    from .producer_ids import ProducerIdSource

ASK_CONTROLLER: Final = (19, 20, 37, 43, 45, 46, 57, 64, 80, 81)
"""The APIs that are brought to the controller, and given nothing else: CreateTopics, DeleteTopics, ..."""

ALTER_CONFIGS: Final = (33, 44)
"""Those of which a broker refuses something before it asks the controller."""

PARTITIONS_MAX: Final = "max.request.partition.size.limit"


def admin_handlers(
    *,
    broker_id: int,
    calls: ControllerCalls,
    image: Callable[[], MetadataImage],
    config: Callable[[], BrokerConfig],
    producer_ids: ProducerIdSource,
    transactions: Callable[[], Transactions | None],
    internal_topics: Set[str],
    hand_overs: HandOvers | None,
) -> dict[int, Given]:
    """Return what the handlers that the controller and the image answer are given, by API key.

    Args:
        broker_id: This broker.
        calls: Bring what is asked to the controller.
        image: Returns the current metadata.
        config: Returns this broker's configuration with its dynamic layers.
        producer_ids: For InitProducerId.
        transactions: Returns the transaction coordinator, where there is one.
        internal_topics: To which no client writes.
        hand_overs: How leaders that were voted for make way, where there are several brokers.
    """
    return {
        **{api_key: {"calls": calls} for api_key in ASK_CONTROLLER},
        **{
            api_key: {"calls": calls, "broker_id": broker_id, "config": config, "image": image}
            for api_key in ALTER_CONFIGS
        },
        22: {"producer_ids": producer_ids, "transactions": transactions},
        32: {"broker_id": broker_id, "image": image, "config": config},
        43: {"calls": calls, "hand_overs": hand_overs},
        60: {"broker_id": broker_id, "image": image},
        74: {"image": image},
        75: {
            "image": image,
            "partitions_max": lambda: config().get_int(PARTITIONS_MAX),
            "internal_topics": internal_topics,
        },
    }
