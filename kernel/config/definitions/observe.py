"""Pure core: the keys of metrics, telemetry and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from .vocabulary import ANY_LIST, CLASS, CLUSTER_WIDE, INT, LIST, LONG, LOW, POSITIVE, READ_ONLY, STRING

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("metrics.num.samples", INT, 2, POSITIVE, LOW, READ_ONLY, Part.METRICS),
    ("metrics.sample.window.ms", LONG, 30000, POSITIVE, LOW, READ_ONLY, Part.METRICS),
    ("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), ANY_LIST, LOW, CLUSTER_WIDE, Part.JVM),
    ("metrics.recording.level", STRING, "INFO", None, LOW, READ_ONLY, Part.METRICS),
    ("kafka.metrics.reporters", LIST, (), ANY_LIST, LOW, READ_ONLY, Part.JVM),
    ("kafka.metrics.polling.interval.secs", INT, 10, POSITIVE, LOW, READ_ONLY, Part.JVM),
    ("telemetry.max.bytes", INT, 1_048_576, POSITIVE, LOW, READ_ONLY, Part.TELEMETRY),
    ("quota.window.num", INT, 11, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("replication.quota.window.num", INT, 11, POSITIVE, LOW, READ_ONLY, Part.REPLICATION),
    ("alter.log.dirs.replication.quota.window.num", INT, 11, POSITIVE, LOW, READ_ONLY, Part.LOG),
    ("controller.quota.window.num", INT, 11, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("quota.window.size.seconds", INT, 1, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("replication.quota.window.size.seconds", INT, 1, POSITIVE, LOW, READ_ONLY, Part.REPLICATION),
    ("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, POSITIVE, LOW, READ_ONLY, Part.LOG),
    ("controller.quota.window.size.seconds", INT, 1, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("client.quota.callback.class", CLASS, None, None, LOW, READ_ONLY, Part.QUOTAS),
)

_DOCS: Final = """
metrics.num.samples
    How many samples Kafka's metrics keep to compute a rate.

metrics.sample.window.ms
    How long one sample of Kafka's metrics is.

metric.reporters
    Java classes that report metrics.

metrics.recording.level
    Which metrics Kafka records: INFO, DEBUG or TRACE.

kafka.metrics.reporters
    Java classes that report Yammer metrics.

kafka.metrics.polling.interval.secs
    How often the classes of `kafka.metrics.reporters` are asked to report.

telemetry.max.bytes
    How large a client's pushed metrics may be.

quota.window.num
    How many windows client quotas are averaged over.

replication.quota.window.num
    How many windows replication throttles are averaged over.

alter.log.dirs.replication.quota.window.num
    How many windows the byte rate of moves between directories is averaged over.

controller.quota.window.num
    How many windows the quota of topic changes is averaged over.

quota.window.size.seconds
    How long one window of client quotas is.

replication.quota.window.size.seconds
    How long one window of replication throttles is.

alter.log.dirs.replication.quota.window.size.seconds
    How long one window of the byte rate of moves between directories is.

controller.quota.window.size.seconds
    How long one window of the quota of topic changes is.

client.quota.callback.class
    The Java class that decides client quotas.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)
