import logging
import random
from itertools import accumulate

import attrs
import pytest

from odradek.kernel.contracts.services import Metric
from odradek.kernel.dispatch.fetch_session import FetchSessionCache
from odradek.kernel.dispatch.handlers.api_23_offset_for_leader_epoch import OffsetForLeaderEpochHandler
from odradek.kernel.dispatch.routes import Route
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.producer_table import ProducerStateTable
from odradek.kernel.purgatory.purgatory import Purgatory
from odradek.kernel.purgatory.timing_wheel import TimingWheel
from odradek.kernel.wire.registry import APIS
from odradek.plugins.observe.broker_metrics import (
    network_metrics,
    replica_metrics,
    request_metrics,
    topic_metrics,
    waiting_metrics,
)
from odradek.plugins.observe.idle_monitor import SAMPLES_BEFORE_WARNING, IdleMonitor
from tests.partitions.local_replicas import LocalReplicas

from .opened import QUIET, memory_replicas, watched


@pytest.fixture
def local() -> LocalReplicas:
    return memory_replicas("a", "b")


def by_name(*metrics: Metric) -> dict[str, Metric]:
    return {metric.name: metric for metric in metrics}


def test_topics_are_counted_one_by_one_and_together_even_after_a_topic_is_deleted(local: LocalReplicas) -> None:
    replicas = local.replicas
    bytes_in = by_name(*topic_metrics(watched(replicas).figures))["kafka_server_brokertopicmetrics_bytesin_total"]
    replicas.topics["a"].counters.bytes_in = 5
    replicas.topics["b"].counters.bytes_in = 7
    first = dict(bytes_in.read())
    run_at_once(local.lifecycle.delete_topic_in_steps("a", 1))
    replicas.topics["b"].counters.bytes_in = 8

    assert first == {("",): 12, ("a",): 5, ("b",): 7}
    assert bytes_in.read() == {("",): 13, ("b",): 8}


def test_replicas_are_counted_and_their_logs_measured(local: LocalReplicas, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = local.replicas
    late = replicas.get("a", 1).producers
    monkeypatch.setattr(ProducerStateTable, "has_late_transaction", lambda table, *_: table is late)
    replicas.get("b", 1).go_offline("a test")
    metrics = by_name(*replica_metrics(watched(replicas).figures))

    assert metrics["kafka_server_replicamanager_partitioncount"].read() == {(): 4}
    assert metrics["kafka_server_replicamanager_leadercount"].read() == {(): 3}
    assert metrics["kafka_server_replicamanager_offlinereplicacount"].read() == {(): 1}
    assert metrics["kafka_server_replicamanager_partitionswithlatetransactionscount"].read() == {(): 1}
    assert metrics["kafka_log_log_size"].read() == {("a", "0"): 0, ("a", "1"): 0, ("b", "0"): 0}
    assert metrics["kafka_log_log_logendoffset"].read()["a", "0"] == 0
    assert metrics["kafka_log_log_numlogsegments"].read()["a", "0"] == 1


def test_requests_are_counted_and_timed_by_api(local: LocalReplicas) -> None:
    route = Route(APIS[23], OffsetForLeaderEpochHandler(replicas=local.replicas), "", lambda: 0.0)
    route.errors_count = 1
    route.latency_ms.record(3)
    route.latency_ms.record(4)
    metrics = by_name(*request_metrics(watched(routes={23: route}).figures))

    assert metrics["kafka_network_requestmetrics_requests_total"].read() == {(route.name,): 2}
    assert metrics["kafka_network_requestmetrics_errors_total"].read() == {(route.name,): 1}
    assert metrics["kafka_network_requestmetrics_totaltimems_count"].read() == {(route.name,): 2}
    assert metrics["kafka_network_requestmetrics_totaltimems"].read()[route.name, "0.99"] == 4


def test_what_waits_is_counted() -> None:
    purgatory = Purgatory("Fetch", TimingWheel(now_ms=0), on_error=lambda operation, error: None)
    sessions = FetchSessionCache(slots=1, random_source=random.Random(0))
    sessions.create({}, 0, is_privileged=False, uses_topic_ids=True)
    metrics = by_name(*waiting_metrics(watched(purgatory=purgatory, sessions=sessions).figures))

    assert metrics["kafka_server_delayedoperationpurgatory_purgatorysize"].read() == {("Produce",): 0, ("Fetch",): 0}
    assert metrics["kafka_server_delayedoperationpurgatory_numdelayedoperations"].read() == {
        ("Produce",): 0,
        ("Fetch",): 0,
    }
    assert metrics["kafka_server_fetchsessioncache_numincrementalfetchsessions"].read() == {(): 1}
    assert metrics["kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total"].read() == {(): 0}


def test_the_network_is_shown_once_it_serves_and_how_idle_it_is_once_it_was_sampled() -> None:
    pictures = [None, QUIET]
    figures = watched(network=lambda: pictures[-1]).figures
    monitor = IdleMonitor(figures.network)
    metrics = by_name(*network_metrics(figures, lambda: monitor.idle_ratio))
    idle = metrics["kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"]
    before = idle.read()
    monitor.sample()
    bytes_in = metrics["kafka_server_socket_server_metrics_incoming_byte_total"]
    pictures.pop()

    assert before == {}
    assert idle.read() == {(): 0.9}
    assert metrics["kafka_network_socketserver_networkprocessoravgidle_percent"].read() == {(): 0.9}
    assert bytes_in.read() == {}
    pictures.append(QUIET)
    assert bytes_in.read() == {(): 10}


def test_a_reactor_that_stays_busy_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Each sample is of the time since the one before: ten seconds, of which nine or one were busy."""
    busy, quiet = 9.0, 1.0
    seconds = [busy, quiet, *[busy] * (2 * SAMPLES_BEFORE_WARNING), quiet, quiet]
    totals = accumulate(seconds)
    pictures = [attrs.evolve(QUIET, served_s=10.0 * number, busy_s=total) for number, total in enumerate(totals, 1)]
    samples = iter([None, *pictures])
    monitor = IdleMonitor(lambda: next(samples))
    with caplog.at_level(logging.WARNING):
        for _ in range(1 + len(pictures)):
            monitor.sample()

    assert ["is busy" in caplog.messages[0], "room again" in caplog.messages[1]] == [True, True]
    assert len(caplog.messages) == 2
    assert vars(caplog.records[0])["idle_percent"] == 10
