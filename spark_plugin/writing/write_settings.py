"""Pure core: how a sink writes: the producer's keys of Kafka, read and checked, and what the sink sets otherwise.

| key | here |
| --- | --- |
| `batch.size` | 1 MiB where it is not given, at most `max.request.size`: rows come in thousands, not one by one |
| `linger.ms` | no effect: what Spark hands over is sent |
| `max.in.flight.requests.per.connection` | at most 5 requests to a broker; of a partition one batch at a time |
| `acks` | `all` and `1` as they are; with `0` the sink waits for answers all the same, as with `1` |
| `transaction.timeout.ms` | 15 minutes where it is not given, which is what brokers allow: it has to cover a batch |

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.client.producer_settings import ProducerSettings
from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.records.compression import CompressionType

BATCH_BYTES: Final = 1_048_576
TRANSACTION_TIMEOUT_MS: Final = 900_000
IN_FLIGHT_MAX: Final = 5
_BATCH_BYTES_MAX: Final = 2**30
"""A batch's length is an int32."""
_KEYS: Final = (
    "acks",
    "batch.size",
    "bootstrap.servers",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delivery.timeout.ms",
    "enable.idempotence",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "request.timeout.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "transaction.timeout.ms",
)


@attrs.frozen(kw_only=True)
class WriteSettings:
    """How batches are made and sent; can be pickled. Times in milliseconds, sizes in bytes.

    Attributes:
        acks: -1 or 1.
        is_idempotent: Whether batches carry a producer id and sequences, so that repetitions double nothing.
        batch_bytes: Size of a batch before compression.
        request_bytes: Size of a request, and of a record.
        in_flight_max: Unanswered requests of one broker.
        delivery_timeout_ms: How long a batch may take from its first attempt on.
        request_timeout_ms: How long one request may take.
        retries: How often a batch is sent again.
        retry_backoff_ms: The first pause between attempts.
        retry_backoff_max_ms: What pauses grow to.
        compression: The codec.
        compression_level: None for its default.
        transaction_timeout_ms: When coordinators abort what was not ended.
    """

    acks: int = -1
    is_idempotent: bool = True
    batch_bytes: int = BATCH_BYTES
    request_bytes: int = BATCH_BYTES
    in_flight_max: int = IN_FLIGHT_MAX
    delivery_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000
    retries: int = 2**31 - 1
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    compression: CompressionType
    compression_level: int | None = None
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS

    @classmethod
    def of(cls, kafka: Mapping[str, str], *, exactly_once: bool) -> WriteSettings:
        """Read Kafka's keys.

        Args:
            kafka: The keys, without `kafka.`, in small letters; those of other matters are let pass.
            exactly_once: Whether transactions are used, which do without nothing.

        Raises:
            ConfigError: A value is none of its key, or the settings contradict each other.
        """
        given: dict[str, object] = {key: kafka[key] for key in _KEYS if key in kafka}
        given["linger.ms"] = 0
        read = ProducerSettings.read(given)
        if exactly_once and not read.is_idempotent:
            raise ConfigError(
                "exactlyOnce=true needs kafka.acks=all, kafka.retries > 0, and neither kafka.enable.idempotence=false "
                "nor more than 5 requests in flight"
            )
        batch_bytes = read.batch_size_bytes if "batch.size" in kafka else BATCH_BYTES
        timeout_ms = read.transaction_timeout_ms if "transaction.timeout.ms" in kafka else TRANSACTION_TIMEOUT_MS
        return cls(
            acks=read.acks or 1,
            is_idempotent=read.is_idempotent,
            batch_bytes=max(min(batch_bytes, read.request_size_bytes_max, _BATCH_BYTES_MAX), 1),
            request_bytes=read.request_size_bytes_max,
            in_flight_max=min(read.in_flight_max, IN_FLIGHT_MAX),
            delivery_timeout_ms=read.delivery_timeout_ms,
            request_timeout_ms=read.connection.request_timeout_ms,
            retries=read.retries,
            retry_backoff_ms=read.connection.retry_backoff_ms,
            retry_backoff_max_ms=read.connection.retry_backoff_max_ms,
            compression=read.compression,
            compression_level=read.compression_level,
            transaction_timeout_ms=timeout_ms,
        )
