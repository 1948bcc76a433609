"""Pure core: the keys that Kafka does not have; they all begin with `odradek.` and are listed after Kafka's.

One is that of a later Kafka, taken under its name, and listed where it is set.

*Source:* KIP-1191, for that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import TEN_YEARS_MS, AtLeast, Between, NotEmpty, OneOf
from .vocabulary import BOOLEAN, CLUSTER_WIDE, DOUBLE, HIGH, INT, LONG, LOW, MEDIUM, NOT_NEGATIVE, READ_ONLY, STRING

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

TIERED: Final = "tiered"
"""As `odradek.storage`: short for `TIERED_OVER` with `remote.storage.enable=true`."""
TIERED_OVER: Final = "segment"

# fmt: off
_BROKER_ROWS: Final[tuple[Row, ...]] = (
    ("odradek.storage", STRING, "segment", NotEmpty(), HIGH, READ_ONLY, Part.LOG),
    ("odradek.election", STRING, "isr", NotEmpty(), HIGH, READ_ONLY, Part.LOG),
    ("odradek.internal.election", STRING, None, NotEmpty(), MEDIUM, READ_ONLY, Part.TOPICS),
    ("odradek.metadata.election", STRING, None, NotEmpty(), HIGH, READ_ONLY, Part.METADATA),
    ("odradek.metadata.version.max", INT, 30, Between(7, 30), LOW, READ_ONLY, Part.METADATA),
    ("odradek.placement", STRING, "striped", OneOf(("striped", "simple")), MEDIUM, READ_ONLY, Part.METADATA),
    ("odradek.cluster.id", STRING, "", None, MEDIUM, READ_ONLY, Part.METADATA),
    ("odradek.produce.validation", STRING, "auto", OneOf(("auto", "full", "headers")), MEDIUM, READ_ONLY,
     Part.REQUESTS),
    ("odradek.network.loop", STRING, "auto", OneOf(("auto", "epoll", "portable")), LOW, READ_ONLY, Part.NETWORK),
    ("odradek.network.memory.bytes", LONG, 268_435_456, AtLeast(1_048_576), MEDIUM, READ_ONLY, Part.NETWORK),
    ("odradek.shutdown.timeout.ms", INT, 10_000, NOT_NEGATIVE, LOW, READ_ONLY, Part.NETWORK),
)

_TOPIC_ROWS: Final[tuple[Row, ...]] = (
    ("odradek.storage", STRING, "segment", NotEmpty(), HIGH, READ_ONLY, Part.LOG),
    ("odradek.election", STRING, "isr", NotEmpty(), HIGH, READ_ONLY, Part.LOG),
    ("odradek.delay.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.delay.max.ms", LONG, TEN_YEARS_MS, AtLeast(1), LOW, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.delay.queue", STRING, "wheel", NotEmpty(), LOW, READ_ONLY, Part.TOPICS),
    ("odradek.retry.auto", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.retry.topic", STRING, "", None, MEDIUM, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.retry.group", STRING, "", None, MEDIUM, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.retry.policy", STRING, "levels", NotEmpty(), LOW, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.retry.order", STRING, "none", OneOf(("none", "key")), MEDIUM, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.retry.order.waiting.max", INT, 100_000, AtLeast(1), LOW, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.retry.breaker.share", DOUBLE, 0.0, Between(0, 1), MEDIUM, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.retry.breaker.window.ms", LONG, 60_000, Between(1_000, 86_400_000), LOW, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.retry.breaker.minimum", INT, 20, AtLeast(1), LOW, CLUSTER_WIDE, Part.TOPICS),
    ("odradek.retry.dead.letters.of", STRING, "", None, MEDIUM, CLUSTER_WIDE, Part.TOPICS),
)

DEAD_LETTERS_ENABLE: Final = "errors.deadletterqueue.group.enable"
_LATER_ROWS: Final[tuple[Row, ...]] = (
    (DEAD_LETTERS_ENABLE, BOOLEAN, True, None, MEDIUM, CLUSTER_WIDE, Part.TOPICS),
)
# fmt: on

_BROKER_DOCS: Final = """
odradek.storage
    The storage plugin of topics that choose none: how the log of a partition is kept. `odradek plugins list` shows the
    names. `tiered` is short for `segment` with `remote.storage.enable=true`.

odradek.election
    The election plugin of topics that choose none: who leads a partition, and when a record is committed.

odradek.internal.election
    The election plugin of internal topics, as `__consumer_offsets` and `__transaction_state`, when they are made; not
    set, that of topics that choose none. Where their replicas vote they are made once there are as many brokers as
    `offsets.topic.replication.factor` or `transaction.state.log.replication.factor` says.

odradek.metadata.election
    The election plugin of the metadata log. Not set, it is `quorum` where several voters keep it, or the log names its
    voters, and `isr` where one node keeps it. Several voters need one whose replicas vote.

odradek.metadata.version.max
    The highest level of the feature `metadata.version` that this broker supports. A new cluster begins with it, and no
    update goes beyond it on any broker; lower it where brokers of an older version are to join.

odradek.placement
    Which brokers get the replicas of new partitions. `striped`: round the racks and their brokers, from a random place,
    as in Kafka; `simple`: partition i begins on broker i mod n, and its replica j is on broker (i + j) mod n.

odradek.cluster.id
    The cluster's id when the data directory is used for the first time; empty draws a random one. A data directory that
    belongs to another cluster is refused.

odradek.produce.validation
    How closely a produced batch is checked. `headers`: header, checksum, sizes, counts, timestamps, sequence; `full`:
    every record too, as Kafka's leader does; `auto`: full where it is cheap or a compacted topic needs it.

odradek.network.loop
    What serves the sockets: `epoll` (Linux, fastest), `portable` (everywhere), `auto` takes epoll where there is one.

odradek.network.memory.bytes
    How many bytes of requests may be in memory over all connections, whole or not; beyond it, who needs more waits. Not
    counted are 16 KiB of each connection; where everybody would wait, one request more is received, and 512 KiB.

odradek.shutdown.timeout.ms
    How long a stopping broker lets requests finish before it closes their connections.
"""

_TOPIC_DOCS: Final = """
odradek.storage
    The storage plugin that keeps this topic's partitions; it cannot change once the topic exists. `tiered` is short for
    `segment` with `remote.storage.enable=true`, and shown as these two.

odradek.election
    The election plugin that decides who leads this topic's partitions and when a record is committed; it cannot change
    once the topic exists.

odradek.delay.enable
    Whether records with the header `odradek.deliver.after` or `odradek.deliver.at` are seen only when they are due.
    It cannot be taken back, but set to `false`: then no new ones wait. Not yet with `ttl` or a tier.

odradek.delay.max.ms
    How long a record may wait; one that asks for more is refused.

odradek.delay.queue
    The plugin that knows which delayed record is due next, chosen when the topic is created: `wheel`, to the
    millisecond, `levels`, where delays are rounded up, or a plugin of your own (`odradek plugins list`). With each of
    them records wait in the log of their partition: levels are no topics.

odradek.retry.auto
    Whether the topics of failed records, `TOPIC.GROUP.retry` and `TOPIC.GROUP.dlq`, of any group that reads this topic
    are made when somebody first asks for one of them; `auto.create.topics.enable` has to be on, too.

odradek.retry.topic
    Makes this topic the one to which the group of `odradek.retry.group` produces what it failed, reading the topic that
    is named here: they are given back later, on this topic. It cannot be taken back.

odradek.retry.group
    The group whose failed records come to this topic.

odradek.retry.policy
    The plugin that says when a failed record is given back, and how often; `odradek plugins list` shows the names.

odradek.retry.order
    With `key`, Odradek's own consumer gives no record to the group while one of its key that came before it waits in
    this topic: it puts it behind that. Other clients have to do so themselves.

odradek.retry.order.waiting.max
    How many records of one partition of this topic a consumer remembers for that; while so many wait it reads its
    partition of the topic that the group reads no further.

odradek.retry.breaker.share
    Pauses the dead letters of a partition while within `odradek.retry.breaker.window.ms` the attempts of more records
    are over than this share of the records that failed for the first time: an outage is not a poison record. What would
    be dead waits for a window more, and is given back; no record is spared for more than a day. With 0 nothing is ever
    paused.

odradek.retry.breaker.window.ms
    The time within which failed records are counted for `odradek.retry.breaker.share`, and for which a record waits
    that is spared; a day at most.

odradek.retry.breaker.minimum
    Of how many records of a partition the attempts have to be over within the window before any is spared.

odradek.retry.dead.letters.of
    Makes this topic the one to which the dead letters of the retry topic that is named here are taken, partition by
    partition: it is to have as many. It cannot be taken back.
"""


_LATER_DOCS: Final = """
errors.deadletterqueue.group.enable
    Whether dead letters are taken to this topic, where it names a retry topic (`odradek.retry.dead.letters.of`). Set to
    `false` it has them stay in the retry topic, as long as that keeps them. Kafka 4.4 has the key for share groups.
"""


def _same_name(name: str) -> tuple[str, ...]:
    return (name,)


def _of_broker(name: str) -> tuple[str, ...]:
    return () if name.startswith(("odradek.delay.", "odradek.retry.")) else (name,)


BROKER_KEYS: Final[tuple[ConfigKey, ...]] = build(_BROKER_ROWS, _BROKER_DOCS, scope=Scope.BROKER, synonyms=_same_name)
TOPIC_KEYS: Final[tuple[ConfigKey, ...]] = build(_TOPIC_ROWS, _TOPIC_DOCS, scope=Scope.TOPIC, synonyms=_of_broker)
LATER_KEYS: Final[tuple[ConfigKey, ...]] = build(
    _LATER_ROWS, _LATER_DOCS, scope=Scope.TOPIC, internal=frozenset({DEAD_LETTERS_ENABLE})
)
