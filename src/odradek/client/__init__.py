"""Shell: the client: producer, consumer and admin, native to trio; and the same behind a blocking facade.

    from odradek.client import Producer, Consumer, Admin, TopicPartition

| module | what it holds |
| --- | --- |
| `producer`, `consumer`, `admin` | what users open with `async with` |
| `blocking`, `blocking_producer`, `blocking_consumer`, `admin_blocking` | the same without trio, on their own thread |
| `errors` | what calls raise, with `retriable` |
| `settings`, `producer_settings`, `consumer_settings`, `refused_keys` | Kafka's keys: read and checked, or refused |
| `group` | what a consumer does as a member of a group |
| `ordered` | how it keeps the order of keys, though records fail |
| `transactions` | what a producer does with a `transactional.id` |
| `accumulator`, `sequences`, `partitioners`, `partition_choice`, `serializing` | a producer's pure cores |
| `fetcher`, `fetched_records`, `positions` | a consumer's |
| `admin_values`, `admin_group_values` | an admin's: what its calls take and give |
| `cluster`, `doubts`, `offset_lists` | pure cores of both |
| `sender`, `delivery`, `fetch_loop`, `consumer_positions`, `failed_records` | the shells around the two |
| `admin_calls`, `admin_assignments`, `admin_groups`, `admin_quorum`, `admin_transactions` | those around an admin |
| `brokers`, `links`, `offsets` | the shells of all, upon `odradek.kernel.peers`: connections, versions, pauses, TLS |

Names are imported when somebody asks for them: the command line does not pay for a consumer it does not use.

.. versionadded:: 0.1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from odradek.kernel.peers.errors import (
        ClientError,
        ConnectionFailedError,
        RequestTimeoutError,
        UnsupportedVersionError,
    )
    from odradek.kernel.types import TopicPartition

    from .admin import Admin
    from .admin_blocking import BlockingAdmin
    from .admin_values import ConfigOperation, NewTopic, ResourceType
    from .blocking_consumer import BlockingConsumer
    from .blocking_producer import BlockingProducer
    from .consumer import Consumer
    from .delivery import Delivery, ProducerRecord, RecordMetadata
    from .errors import (
        BrokerError,
        BufferExhaustedError,
        ClientClosedError,
        ClientTimeoutError,
        ClientUsageError,
        CommitFailedError,
        DeserializationError,
        LogTruncationError,
        NoOffsetForPartitionError,
        ProducerFencedError,
        RebalanceInProgressError,
        RecordTooLargeError,
        SerializationError,
        TransactionAbortableError,
        TransactionAbortedError,
        TransactionFatalError,
    )
    from .fetched_records import ConsumerRecord
    from .group.committed import OffsetAndMetadata
    from .group.listener import RebalanceListener
    from .group.member import GroupMetadata
    from .group.subscription import Subscription
    from .offset_lists import OffsetAndTimestamp
    from .partitioners import Partitioner
    from .producer import Producer

_HOMES: Final = {
    "Admin": "admin",
    "BlockingAdmin": "admin_blocking",
    "BlockingConsumer": "blocking_consumer",
    "BlockingProducer": "blocking_producer",
    "BrokerError": "errors",
    "BufferExhaustedError": "errors",
    "ClientClosedError": "errors",
    "ClientError": "odradek.kernel.peers.errors",
    "ClientTimeoutError": "errors",
    "ClientUsageError": "errors",
    "CommitFailedError": "errors",
    "ConfigOperation": "admin_values",
    "ConnectionFailedError": "odradek.kernel.peers.errors",
    "Consumer": "consumer",
    "ConsumerRecord": "fetched_records",
    "Delivery": "delivery",
    "DeserializationError": "errors",
    "GroupMetadata": "group.member",
    "LogTruncationError": "errors",
    "NewTopic": "admin_values",
    "NoOffsetForPartitionError": "errors",
    "OffsetAndMetadata": "group.committed",
    "OffsetAndTimestamp": "offset_lists",
    "Partitioner": "partitioners",
    "Producer": "producer",
    "ProducerFencedError": "errors",
    "ProducerRecord": "delivery",
    "RebalanceInProgressError": "errors",
    "RebalanceListener": "group.listener",
    "RecordMetadata": "delivery",
    "RecordTooLargeError": "errors",
    "RequestTimeoutError": "odradek.kernel.peers.errors",
    "ResourceType": "admin_values",
    "SerializationError": "errors",
    "Subscription": "group.subscription",
    "TopicPartition": "odradek.kernel.types",
    "TransactionAbortableError": "errors",
    "TransactionAbortedError": "errors",
    "TransactionFatalError": "errors",
    "UnsupportedVersionError": "odradek.kernel.peers.errors",
}

__all__ = [
    "Admin",
    "BlockingAdmin",
    "BlockingConsumer",
    "BlockingProducer",
    "BrokerError",
    "BufferExhaustedError",
    "ClientClosedError",
    "ClientError",
    "ClientTimeoutError",
    "ClientUsageError",
    "CommitFailedError",
    "ConfigOperation",
    "ConnectionFailedError",
    "Consumer",
    "ConsumerRecord",
    "Delivery",
    "DeserializationError",
    "GroupMetadata",
    "LogTruncationError",
    "NewTopic",
    "NoOffsetForPartitionError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "Partitioner",
    "Producer",
    "ProducerFencedError",
    "ProducerRecord",
    "RebalanceInProgressError",
    "RebalanceListener",
    "RecordMetadata",
    "RecordTooLargeError",
    "RequestTimeoutError",
    "ResourceType",
    "SerializationError",
    "Subscription",
    "TopicPartition",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionFatalError",
    "UnsupportedVersionError",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(home if home.startswith("odradek.") else f".{home}", __name__)
    found = globals()[name] = getattr(module, name)
    return found
