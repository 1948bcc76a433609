import math

import pytest

from odradek.kernel.contracts.services import Metric
from odradek.kernel.purgatory.histogram import Histogram
from odradek.plugins.observe.metrics import PORTION_LINES, histogram_metrics, metric_name, render


@pytest.mark.parametrize(
    ("group", "bean_type", "name", "expected"),
    [
        ("kafka.server", "BrokerTopicMetrics", "BytesInPerSec", "kafka_server_brokertopicmetrics_bytesin_total"),
        ("kafka.server", "ReplicaManager", "LeaderCount", "kafka_server_replicamanager_leadercount"),
        (
            "kafka.network",
            "SocketServer",
            "NetworkProcessorAvgIdlePercent",
            "kafka_network_socketserver_networkprocessoravgidle_percent",
        ),
        ("kafka.log", "Log", "Size", "kafka_log_log_size"),
        ("kafka.server", "socket-server-metrics", "x y", "kafka_server_socket_server_metrics_x_y"),
    ],
)
def test_names_are_those_of_the_jmx_exporter(group: str, bean_type: str, name: str, expected: str) -> None:
    assert metric_name(group, bean_type, name) == expected


def rendered(metric: Metric) -> str:
    return "".join(render([metric]))


def test_a_metric_is_rendered_with_help_type_labels_and_values() -> None:
    values: dict[tuple[str, ...], float] = {("t", "0"): 7, ("", ""): 1.5, ('q"\\\n', ""): 2**70}
    metric = Metric("m", "Two\nlines \\.", "counter", lambda: values, ("topic", "partition"))

    assert rendered(metric) == (
        "# HELP m Two\\nlines \\\\.\n"
        "# TYPE m counter\n"
        'm{topic="t",partition="0"} 7\n'
        "m 1.5\n"
        'm{topic="q\\"\\\\\\n"} 1180591620717411303424\n'
    )


@pytest.mark.parametrize(
    ("value", "text"), [(math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN"), (0.1, "0.1"), (True, "1")]
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, text: str) -> None:
    assert rendered(Metric("m", "h", "gauge", lambda: {(): value})).endswith(f"m {text}\n")


def test_a_histogram_becomes_quantiles_and_a_count() -> None:
    histogram = Histogram()
    for value in range(1, 101):
        histogram.record(value)
    quantiles, count = histogram_metrics("h", "Help.", lambda: {("Produce",): histogram}, ("request",))

    assert count.read() == {("Produce",): 100}
    assert quantiles.labels == ("request", "quantile")
    assert 50 <= quantiles.read()["Produce", "0.50"] <= 62.5
    assert 99 <= quantiles.read()["Produce", "0.99"] <= 100


def test_a_metric_that_fails_is_logged_and_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> dict[tuple[str, ...], float]:
        raise ValueError("broken")

    metrics = [Metric("broken", "h", "gauge", fail), Metric("sound", "h", "gauge", lambda: {(): 3})]

    assert "".join(render(metrics)) == "# HELP sound h\n# TYPE sound gauge\nsound 3\n"
    assert [vars(record)["metric"] for record in caplog.records] == ["broken"]


def test_a_metric_of_many_values_is_rendered_in_portions() -> None:
    count = 3 * PORTION_LINES
    many = Metric("m", "h", "gauge", lambda: {(str(number),): number for number in range(count)}, ("n",))
    portions = list(render([many]))

    assert max(text.count("\n") for text in portions) <= PORTION_LINES + 1
    assert "".join(portions).count("\n") == count + 2
