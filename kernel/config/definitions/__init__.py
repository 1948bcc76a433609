"""Pure core: every configuration key as data, one module an area, in the order of Apache Kafka's own tables.

The order inside the broker's tables matters to nobody but DescribeConfigs, which lists keys as Kafka does
(`registry.listing_order`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import (
    cleaner,
    client_metrics,
    consumer_groups,
    drawn_ids,
    dynamic_only,
    groups,
    kraft,
    log,
    network,
    observe,
    odradek,
    quorum,
    replication,
    sasl,
    security,
    server,
    share,
    tiered,
    tls,
    topics,
    transactions,
)

if TYPE_CHECKING:
    from ..keys import ConfigKey

KAFKA_KEYS: Final[tuple[ConfigKey, ...]] = (
    *tiered.KEYS,
    *server.KEYS,
    *kraft.KEYS,
    *network.KEYS,
    *replication.KEYS,
    *groups.KEYS,
    *cleaner.KEYS,
    *log.KEYS,
    *share.KEYS,
    *transactions.KEYS,
    *quorum.KEYS,
    *observe.KEYS,
    *security.KEYS,
    *tls.KEYS,
    *sasl.KEYS,
    *topics.KEYS,
    *consumer_groups.KEYS,
    *client_metrics.KEYS,
)
"""What Apache Kafka 4.3 lists."""

UNLISTED_KEYS: Final[tuple[ConfigKey, ...]] = (
    *dynamic_only.KEYS,
    *security.AUTHORIZER_KEYS,
    *drawn_ids.KEYS,
    *odradek.LATER_KEYS,
)
"""What Apache Kafka 4.3 knows and lists only where it is set, or knew until 3.9, or from 4.4 on, and works here."""

OWN_KEYS: Final[tuple[ConfigKey, ...]] = (*odradek.BROKER_KEYS, *odradek.TOPIC_KEYS)
"""What only this broker knows."""
