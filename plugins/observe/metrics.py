"""Shell: metrics: their names, and Prometheus' text.

Nothing is counted here. The rooms of the broker keep plain integers on their own objects, because that is what the hot
path can afford; a `Metric` knows how to read them, and is asked when somebody scrapes.

Names are those that Kafka's JMX beans get from the rules that most people run the JMX exporter with:

============================================================  ===================================================
kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec       kafka_server_brokertopicmetrics_bytesin_total
kafka.network:...=SocketServer,name=...AvgIdlePercent         kafka_network_socketserver_...avgidle_percent
kafka.network:type=RequestMetrics,name=TotalTimeMs            kafka_network_requestmetrics_totaltimems (quantiles)
============================================================  ===================================================

*Source:* jmx_exporter's example rules for Kafka; Prometheus text format 0.0.4.
"""

from __future__ import annotations

import logging
import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from odradek.kernel.api import LatencyFigures

log = logging.getLogger(__name__)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PORTION_LINES: Final = 256
"""So much text is made at a time: about half a millisecond of it."""
QUANTILES: Final = (("0.50", 0.5), ("0.75", 0.75), ("0.95", 0.95), ("0.98", 0.98), ("0.99", 0.99), ("0.999", 0.999))

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]+")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_HELP_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})


def metric_name(group: str, bean_type: str, name: str) -> str:
    """Return the Prometheus name of one of Kafka's metrics.

    Args:
        group: The part before the colon: `kafka.server`.
        bean_type: `BrokerTopicMetrics`.
        name: `BytesInPerSec`.
    """
    if name.endswith("PerSec"):
        name = f"{name.removesuffix('PerSec')}_total"
    elif name.endswith("Percent"):
        name = f"{name.removesuffix('Percent')}_percent"
    return _NOT_IN_NAMES.sub("_", f"{group}_{bean_type}_{name}").lower()


def histogram_metrics(
    name: str, help_text: str, read: Callable[[], Mapping[tuple[str, ...], LatencyFigures]], labels: tuple[str, ...]
) -> tuple[Metric, Metric]:
    """Return what the exporter makes of a histogram: a gauge for each quantile, and the count.

    Args:
        name: Prometheus name.
        help_text: One sentence.
        read: Returns the histograms by label values.
        labels: Label names.
    """

    def quantiles() -> dict[tuple[str, ...], float]:
        return {
            (*values, text): histogram.percentile(fraction)
            for values, histogram in read().items()
            for text, fraction in QUANTILES
        }

    def counts() -> dict[tuple[str, ...], float]:
        return {values: histogram.count for values, histogram in read().items()}

    return (
        Metric(name, help_text, "gauge", quantiles, (*labels, "quantile")),
        Metric(f"{name}_count", help_text, "counter", counts, labels),
    )


def render(metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield the text of metrics in portions, so that a caller with much to do may pause in between.

    One that cannot be read is left out and logged: it must not cost all others.
    """
    for metric in metrics:
        try:
            lines = _lines(metric, metric.read())
            while portion := "".join(islice(lines, PORTION_LINES)):
                yield portion
        except Exception as error:
            log.error("a metric could not be read", extra={"metric": metric.name}, exc_info=error)


def _lines(metric: Metric, values: Mapping[tuple[str, ...], float]) -> Iterator[str]:
    """Yield a metric in Prometheus' text format; a label without a value is left out, as it means the same."""
    yield f"# HELP {metric.name} {metric.help.translate(_HELP_ESCAPES)}\n# TYPE {metric.name} {metric.kind}\n"
    for label_values, value in values.items():
        labels = ",".join(
            f'{name}="{text.translate(_ESCAPES)}"'
            for name, text in zip(metric.labels, label_values, strict=True)
            if text
        )
        yield f"{metric.name}{{{labels}}} {_number(value)}\n" if labels else f"{metric.name} {_number(value)}\n"


def _number(value: float) -> str:
    """Return a number as Prometheus writes it; whole ones without a point, however large."""
    if isinstance(value, int):
        return str(int(value))
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
