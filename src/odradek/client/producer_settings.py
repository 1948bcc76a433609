"""Pure core: the producer's settings: Kafka's whole table with today's defaults, and the contradictions it refuses.

*Source:* Kafka 4.3 `ProducerConfig`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.config.values import AtLeast, Between, ConfigType, NotEmpty, OneOf
from odradek.kernel.errors import ConfigError
from odradek.kernel.peers.settings import ConnectionSettings
from odradek.kernel.records.compression import CODECS, CompressionType

from .refused_keys import COMMON_REFUSALS
from .settings import COMMON_KEYS, INT_MAX, ClientKey, as_serializer, check_methods, connection_settings, read_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_INT: Final = ConfigType.INT
_LONG: Final = ConfigType.LONG
_BOOLEAN: Final = ConfigType.BOOLEAN
_TWO_PHASES: Final = "taking part in another system's two-phase commit (KIP-939) is not built"
_IN_FLIGHT_MAX: Final = 5
"""A broker remembers so many batches of a producer, so duplicates are told from gaps only within them."""
_RETIRED: Final = {
    "request.required.acks": "acks",
    "linger.size": "linger.ms",
    "timeout.ms": "request.timeout.ms",
    "metadata.fetch.timeout.ms": "max.block.ms",
    "fetch.timeout.ms": "max.block.ms",
    "block.on.buffer.full": "max.block.ms",
    "metadata.broker.list": "bootstrap.servers",
    "producer.type": "Producer.send for the synchronous form and Producer.enqueue for the other",
    "serializer.class": "value.serializer",
    "compression.codec": "compression.type",
    "message.send.max.retries": "retries",
    "queue.buffering.max.ms": "linger.ms",
    "batch.num.messages": "batch.size",
}

_LEVEL_KEYS: Final = (
    ClientKey("compression.gzip.level", _INT, -1, "1 to 9; -1 is zlib's default.", Between(-1, 9)),
    ClientKey("compression.lz4.level", _INT, 9, "1 to 17.", Between(1, 17)),
    ClientKey("compression.zstd.level", _INT, 3, "-131072 to 22.", Between(-131_072, 22)),
)

PRODUCER_KEYS: Final = (
    *(attrs.evolve(key, default=32_768) if key.name == "receive.buffer.bytes" else key for key in COMMON_KEYS),
    ClientKey(
        "key.serializer",
        ConfigType.CLASS,
        None,
        "Makes bytes of keys: an object with serialize(topic, key), a callable of the key, or module:name. "
        "Without it keys are bytes or text (UTF-8).",
    ),
    ClientKey("value.serializer", ConfigType.CLASS, None, "The same for values."),
    ClientKey(
        "acks",
        ConfigType.STRING,
        "all",
        "How many replicas must have a record before it counts as sent: 0, 1, or all in-sync ones.",
        OneOf(("all", "-1", "0", "1")),
    ),
    ClientKey(
        "batch.size",
        _INT,
        16_384,
        "Up to so many bytes of records for one partition travel together, counted before compression.",
        AtLeast(0),
    ),
    ClientKey("linger.ms", _LONG, 5, "How long a batch that is not full waits for more records.", AtLeast(0)),
    ClientKey("buffer.memory", _LONG, 33_554_432, "Bytes of records that may wait to be sent.", AtLeast(0)),
    ClientKey(
        "max.block.ms", _LONG, 60_000, "How long a send may wait for metadata and for buffer memory.", AtLeast(0)
    ),
    ClientKey("max.request.size", _INT, 1_048_576, "The largest request, and so the largest record.", AtLeast(0)),
    ClientKey(
        "delivery.timeout.ms",
        _INT,
        120_000,
        "When a record is reported as failed at the latest; at least linger.ms + request.timeout.ms.",
        AtLeast(0),
    ),
    ClientKey(
        "retries", _INT, INT_MAX, "How often a batch is sent again after a retriable error.", Between(0, INT_MAX)
    ),
    ClientKey(
        "max.in.flight.requests.per.connection",
        _INT,
        5,
        "Unanswered requests per broker. With 1, or with idempotence and up to 5, retries keep the order.",
        AtLeast(1),
    ),
    ClientKey("interceptor.classes", ConfigType.LIST, (), "Objects with on_send and on_acknowledgement."),
    ClientKey(
        "partitioner.class",
        ConfigType.CLASS,
        None,
        "An object with partition(topic, key, key_bytes, value, value_bytes, cluster), `roundrobin`, or module:name. "
        "Without it: the key's murmur2 hash, and for records without a key the partition stays for a batch.",
    ),
    ClientKey("partitioner.ignore.keys", _BOOLEAN, False, "Whether the built-in partitioner ignores keys."),
    ClientKey(
        "partitioner.adaptive.partitioning.enable",
        _BOOLEAN,
        True,
        "Whether records without a key prefer partitions with short queues.",
    ),
    ClientKey(
        "partitioner.availability.timeout.ms",
        _LONG,
        0,
        "With adaptive partitioning: partitions whose broker took nothing for so long are passed over; 0 is never.",
        AtLeast(0),
    ),
    ClientKey(
        "compression.type",
        ConfigType.STRING,
        "none",
        "The codec of batches.",
        OneOf(tuple(codec.name for codec in CODECS)),
    ),
    *_LEVEL_KEYS,
    ClientKey(
        "metadata.max.idle.ms", _LONG, 300_000, "Topics unused for so long are no longer asked about.", AtLeast(5_000)
    ),
    ClientKey(
        "enable.idempotence",
        _BOOLEAN,
        True,
        "Whether brokers drop duplicates and refuse gaps, so that retries write each record once, in order.",
    ),
    ClientKey(
        "transactional.id",
        ConfigType.STRING,
        None,
        "Names a transactional producer: of two with one name only the younger may go on. Needs idempotence.",
        NotEmpty(),
    ),
    ClientKey(
        "transaction.timeout.ms",
        _INT,
        60_000,
        "When the coordinator aborts a transaction that was not ended; brokers set a limit.",
        AtLeast(1),
    ),
    ClientKey("transaction.two.phase.commit.enable", _BOOLEAN, False, "Two-phase commit (KIP-939).", None, _TWO_PHASES),
)


@attrs.frozen(kw_only=True)
class ProducerSettings:
    """A producer's settings, read and checked; times in milliseconds, sizes in bytes.

    Attributes:
        connection: What every client has.
        acks: -1, 0 or 1.
        compression_level: None where the codec has none, or for its default.
        is_idempotent: Whether batches carry a producer id and sequences.
        transactional_id: None for a producer without transactions.
    """

    connection: ConnectionSettings
    key_serializer: Callable[[str, Any], Any] | None
    value_serializer: Callable[[str, Any], Any] | None
    acks: int
    batch_size_bytes: int
    linger_ms: int
    buffer_memory_bytes: int
    max_block_ms: int
    request_size_bytes_max: int
    delivery_timeout_ms: int
    retries: int
    in_flight_max: int
    interceptors: tuple[Any, ...]
    partitioner: Any
    ignores_keys: bool
    is_adaptive: bool
    availability_timeout_ms: int
    compression: CompressionType
    compression_level: int | None
    metadata_max_idle_ms: int
    is_idempotent: bool
    transactional_id: str | None
    transaction_timeout_ms: int

    @classmethod
    def read(cls, given: Mapping[str, object]) -> ProducerSettings:
        """Read Kafka's keys.

        Raises:
            ConfigError: A key is unknown or unbuilt, a value wrong, or two values contradict each other.
        """
        for name, modern in _RETIRED.items():
            if name in given:
                raise ConfigError(f"unknown producer setting {name!r}", hint=f"today that is {modern}")
        values = read_values(given, PRODUCER_KEYS, "producer", COMMON_REFUSALS)
        check_methods("interceptor.classes", values["interceptor.classes"], "on_send", "on_acknowledgement")
        codec = next(codec for codec in CODECS if codec.name == values["compression.type"])
        level = values.get(f"compression.{codec.name}.level")
        if level == 0 and codec.compression_type is CompressionType.GZIP:
            raise ConfigError("Invalid value 0 for configuration compression.gzip.level: 1 to 9, or -1")
        acks = -1 if values["acks"] == "all" else int(values["acks"])
        return cls(
            connection=connection_settings(given, values, "odradek-producer"),
            key_serializer=as_serializer("key.serializer", values["key.serializer"], "serialize"),
            value_serializer=as_serializer("value.serializer", values["value.serializer"], "serialize"),
            acks=acks,
            batch_size_bytes=values["batch.size"],
            linger_ms=values["linger.ms"],
            buffer_memory_bytes=values["buffer.memory"],
            max_block_ms=values["max.block.ms"],
            request_size_bytes_max=values["max.request.size"],
            delivery_timeout_ms=_delivery_timeout(given, values),
            retries=values["retries"],
            in_flight_max=values["max.in.flight.requests.per.connection"],
            interceptors=values["interceptor.classes"],
            partitioner=values["partitioner.class"],
            ignores_keys=values["partitioner.ignore.keys"],
            is_adaptive=values["partitioner.adaptive.partitioning.enable"],
            availability_timeout_ms=values["partitioner.availability.timeout.ms"],
            compression=codec.compression_type,
            compression_level=None if level == -1 and codec.name == "gzip" else level,
            metadata_max_idle_ms=values["metadata.max.idle.ms"],
            is_idempotent=_idempotence(given, values, acks),
            transactional_id=values["transactional.id"],
            transaction_timeout_ms=values["transaction.timeout.ms"],
        )


def _idempotence(given: Mapping[str, object], values: Mapping[str, Any], acks: int) -> bool:
    """Decide on idempotence: a default gives way to what contradicts it, an explicit wish is refused."""
    is_transactional = values["transactional.id"] is not None
    if not values["enable.idempotence"]:
        if is_transactional:
            raise ConfigError("transactional.id needs enable.idempotence=true")
        return False
    in_flight = values["max.in.flight.requests.per.connection"]
    contradictions = (
        (acks != -1, f"needs acks=all, not {values['acks']}"),
        (values["retries"] == 0, "needs retries > 0"),
        (in_flight > _IN_FLIGHT_MAX, f"needs max.in.flight.requests.per.connection of at most 5, not {in_flight}"),
    )
    for is_contradicted, why in contradictions:
        if is_contradicted and is_transactional:
            raise ConfigError(f"transactional.id {why}")
        if is_contradicted and given.get("enable.idempotence") is not None:
            raise ConfigError(f"enable.idempotence=true {why}")
        if is_contradicted:
            return False
    return True


def _delivery_timeout(given: Mapping[str, object], values: Mapping[str, Any]) -> int:
    """Return `delivery.timeout.ms`, raised to what the others need where it was not given itself."""
    timeout_ms: int = values["delivery.timeout.ms"]
    needed_ms: int = min(values["linger.ms"] + values["request.timeout.ms"], INT_MAX)
    if timeout_ms >= needed_ms:
        return timeout_ms
    if given.get("delivery.timeout.ms") is not None:
        raise ConfigError(f"delivery.timeout.ms={timeout_ms} is less than linger.ms + request.timeout.ms = {needed_ms}")
    return needed_ms
