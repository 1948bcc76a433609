"""Shell: the handlers of the APIs that administer a cluster, each with the parts it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .handlers.api_19_create_topics import CreateTopicsHandler
from .handlers.api_20_delete_topics import DeleteTopicsHandler
from .handlers.api_22_init_producer_id import InitProducerIdHandler
from .handlers.api_32_describe_configs import DescribeConfigsHandler
from .handlers.api_33_alter_configs import AlterConfigsHandler
from .handlers.api_37_create_partitions import CreatePartitionsHandler
from .handlers.api_43_elect_leaders import ElectLeadersHandler
from .handlers.api_44_incremental_alter_configs import IncrementalAlterConfigsHandler
from .handlers.api_45_alter_partition_reassignments import AlterPartitionReassignmentsHandler
from .handlers.api_46_list_partition_reassignments import ListPartitionReassignmentsHandler
from .handlers.api_57_update_features import UpdateFeaturesHandler
from .handlers.api_60_describe_cluster import DescribeClusterHandler
from .handlers.api_64_unregister_broker import UnregisterBrokerHandler
from .handlers.api_74_list_config_resources import ListConfigResourcesHandler
from .handlers.api_75_describe_topic_partitions import PARTITIONS_MAX, DescribeTopicPartitionsHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Set

    from ..config.broker import BrokerConfig
    from ..contracts.api_handler import ApiHandler, AsyncApiHandler
    from ..contracts.transactions import Transactions
    from ..metadata.controller_calls import ControllerCalls
    from ..metadata.image import MetadataImage
    from .handlers.api_22_init_producer_id import ProducerIdSource


def admin_handlers(
    *,
    broker_id: int,
    calls: ControllerCalls,
    image: Callable[[], MetadataImage],
    config: Callable[[], BrokerConfig],
    producer_ids: ProducerIdSource,
    transactions: Callable[[], Transactions | None],
    internal_topics: Set[str],
) -> Iterator[ApiHandler | AsyncApiHandler]:
    """Iterate over the handlers that the controller and the image answer.

    Args:
        broker_id: This broker.
        calls: Bring what is asked to the controller.
        image: Returns the current metadata.
        config: Returns this broker's configuration with its dynamic layers.
        producer_ids: For InitProducerId.
        transactions: Returns the transaction coordinator, where there is one.
        internal_topics: To which no client writes.
    """
    yield CreateTopicsHandler(calls=calls)
    yield DeleteTopicsHandler(calls=calls)
    yield InitProducerIdHandler(producer_ids=producer_ids, transactions=transactions)
    yield DescribeConfigsHandler(broker_id=broker_id, image=image, config=config)
    yield AlterConfigsHandler(calls=calls)
    yield CreatePartitionsHandler(calls=calls)
    yield ElectLeadersHandler(calls=calls)
    yield IncrementalAlterConfigsHandler(calls=calls)
    yield AlterPartitionReassignmentsHandler(calls=calls)
    yield ListPartitionReassignmentsHandler(image=image)
    yield UpdateFeaturesHandler(calls=calls)
    yield DescribeClusterHandler(broker_id=broker_id, image=image)
    yield UnregisterBrokerHandler(calls=calls)
    yield ListConfigResourcesHandler(image=image)
    yield DescribeTopicPartitionsHandler(
        image=image, partitions_max=lambda: config().get_int(PARTITIONS_MAX), internal_topics=internal_topics
    )
