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
    ("replication.quota.window.num", INT, 11, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("alter.log.dirs.replication.quota.window.num", INT, 11, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("controller.quota.window.num", INT, 11, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("quota.window.size.seconds", INT, 1, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("replication.quota.window.size.seconds", INT, 1, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("controller.quota.window.size.seconds", INT, 1, POSITIVE, LOW, READ_ONLY, Part.QUOTAS),
    ("client.quota.callback.class", CLASS, None, None, LOW, READ_ONLY, Part.QUOTAS),
)

_DOCS: Final = """
metrics.num.samples


metrics.sample.window.ms


metric.reporters


metrics.recording.level


kafka.metrics.reporters


kafka.metrics.polling.interval.secs


telemetry.max.bytes


quota.window.num


replication.quota.window.num


alter.log.dirs.replication.quota.window.num


controller.quota.window.num


quota.window.size.seconds


replication.quota.window.size.seconds


alter.log.dirs.replication.quota.window.size.seconds


controller.quota.window.size.seconds


client.quota.callback.class

"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)
