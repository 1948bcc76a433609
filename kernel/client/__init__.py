"""Shell: the client: producer, consumer and admin, native to trio; and the same behind a blocking facade.

    from odradek.kernel.client import Producer, Consumer, Admin, TopicPartition

| module | what it holds |
| --- | --- |
| `producer`, `consumer`, `admin` | what users open with `async with` |
| `blocking` | the same without trio, on a thread of its own |
| `errors` | what calls raise, with `retriable` |
| `settings`, `producer_settings`, `consumer_settings` | Kafka's keys, read and checked |
| `accumulator`, `sequences`, `partitioners`, `fetcher`, `cluster`, `backoff` | the pure cores |
| `sender`, `brokers`, `connection`, `offsets`, `tls`, `lifetime` | the shells around them |

Names are imported when somebody asks for them: the command line does not pay for a consumer it does not use.

.. versionadded:: 0.1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..types import TopicPartition
    from .admin import Admin
    from .admin_values import ConfigOperation, NewTopic, ResourceType
    from .blocking import BlockingAdmin, BlockingConsumer, BlockingProducer
    from .consumer import Consumer
    from .delivery import Delivery, ProducerRecord, RecordMetadata
    from .errors import (
        BrokerError,
        BufferExhaustedError,
        ClientClosedError,
        ClientError,
        ClientTimeoutError,
        ClientUsageError,
        ConnectionFailedError,
        DeserializationError,
        NoOffsetForPartitionError,
        RecordTooLargeError,
        RequestTimeoutError,
        SerializationError,
        UnsupportedVersionError,
    )
    from .fetched_records import ConsumerRecord
    from .offsets import OffsetAndTimestamp
    from .partitioners import Partitioner
    from .producer import Producer

_HOMES: Final = {
    "ConfigOperation": "admin_values",
    "ResourceType": "admin_values",
    "NewTopic": "admin_values",
    "Admin": "admin",
    "BlockingAdmin": "blocking",
    "BlockingConsumer": "blocking",
    "BlockingProducer": "blocking",
    "BrokerError": "errors",
    "BufferExhaustedError": "errors",
    "ClientClosedError": "errors",
    "ClientError": "errors",
    "ClientTimeoutError": "errors",
    "ClientUsageError": "errors",
    "ConnectionFailedError": "errors",
    "Consumer": "consumer",
    "ConsumerRecord": "fetched_records",
    "Delivery": "delivery",
    "DeserializationError": "errors",
    "NoOffsetForPartitionError": "errors",
    "OffsetAndTimestamp": "offsets",
    "Partitioner": "partitioners",
    "Producer": "producer",
    "ProducerRecord": "delivery",
    "RecordMetadata": "delivery",
    "RecordTooLargeError": "errors",
    "RequestTimeoutError": "errors",
    "SerializationError": "errors",
    "TopicPartition": "..types",
    "UnsupportedVersionError": "errors",
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
    "ConfigOperation",
    "ConnectionFailedError",
    "Consumer",
    "ConsumerRecord",
    "Delivery",
    "DeserializationError",
    "NewTopic",
    "NoOffsetForPartitionError",
    "OffsetAndTimestamp",
    "Partitioner",
    "Producer",
    "ProducerRecord",
    "RecordMetadata",
    "RecordTooLargeError",
    "RequestTimeoutError",
    "ResourceType",
    "SerializationError",
    "TopicPartition",
    "UnsupportedVersionError",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(home if home.startswith(".") else f".{home}", __name__)
    found = globals()[name] = getattr(module, name)
    return found
