"""Metrics of replication and of the controller: Kafka's names, and values that were counted before anybody asks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from odradek.kernel.dispatch.cluster_metrics import Calls, cluster_metrics
from odradek.kernel.metadata.image import BrokerImage, MetadataImage
from odradek.kernel.metadata.partition_counts import PartitionCounts
from odradek.kernel.metadata.quorum_figures import ControllerFigures, QuorumFigures
from odradek.kernel.plugin_system.offers import joined_metrics
from odradek.kernel.purgatory.histogram import Histogram
from odradek.kernel.replication.traffic import ReplicationTraffic

RAFT = "kafka_server_raftmetrics_"
REPLICAS = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"
COPIED = (
    "kafka_server_brokertopicmetrics_replicationbytesin_total",
    "kafka_server_brokertopicmetrics_replicationbytesout_total",
    "kafka_server_brokertopicmetrics_reassignmentbytesin_total",
    "kafka_server_brokertopicmetrics_reassignmentbytesout_total",
    "kafka_server_leaderreplication_byte_rate",
    "kafka_server_followerreplication_byte_rate",
)
ELECTIONS = "kafka_controller_controllerstats_leaderelectionrateandtimems"
WAITS = "kafka_controller_controllereventmanager_eventqueuetimems"


def counts(**numbers: int) -> PartitionCounts:
    found = PartitionCounts(1, 1)
    for name, number in numbers.items():
        setattr(found, name, number)
    return found


def broker(broker_id: int, *, is_fenced: bool) -> BrokerImage:
    return BrokerImage(broker_id, 1, UUID(int=broker_id), {}, None, (), is_fenced, in_controlled_shutdown=False)


def controller(*, is_active: bool = True) -> ControllerFigures:
    brokers = [broker(1, is_fenced=False), broker(2, is_fenced=False), broker(3, is_fenced=True)]
    elections, waits = Histogram(), Histogram()
    elections.record(4)
    waits.record(2)
    waits.record(1)
    here = SimpleNamespace(
        is_active=is_active,
        image=MetadataImage(brokers={each.broker_id: each for each in brokers}),
        partition_counts=counts(offline=5, at_min_isr=1),
        queue_ms=waits,
        election_ms=elections,
    )
    return cast("ControllerFigures", here)


def values(
    log: ControllerFigures | None = None,
    member: Any = None,
    replication: Any = None,
    quorum: QuorumFigures | None = None,
) -> dict[str, Any]:
    counted = member or log
    keeping = None
    if counted is not None:
        keeping = SimpleNamespace(figures=log, partition_counts=counted.partition_counts, quorum_figures=lambda: quorum)
    calls = cast("Calls", SimpleNamespace(keeping=keeping))
    return {metric.name: dict(metric.read()) for metric in joined_metrics(cluster_metrics(calls, replication))}


def copying() -> SimpleNamespace:
    return SimpleNamespace(
        reports=SimpleNamespace(shrinks_count=6, expands_count=4),
        fetchers=SimpleNamespace(lag_max=lambda: 70),
        traffic=ReplicationTraffic(bytes_in=40, bytes_out=30, reassigned_in=20, reassigned_out=10),
        leader_quota=SimpleNamespace(bytes_a_second=lambda: 2.5),
        follower_quota=SimpleNamespace(bytes_a_second=lambda: 1.5),
    )


def test_a_member_tells_of_the_partitions_that_it_leads_and_of_how_far_it_is_behind() -> None:
    member = SimpleNamespace(partition_counts=counts(under_replicated=3, under_min_isr=2, at_min_isr=1, offline=9))
    replication = copying()
    found = values(member=member, replication=replication)

    assert {name.removeprefix(REPLICAS): of for name, of in found.items() if name.startswith(REPLICAS)} == {
        "underreplicatedpartitions": {(): 3},
        "underminisrpartitioncount": {(): 2},
        "atminisrpartitioncount": {(): 1},
        "reassigningpartitions": {(): 0},
        "isrshrinks_total": {(): 6},
        "isrexpands_total": {(): 4},
    }
    assert found["kafka_server_replicafetchermanager_maxlag"] == {("Replica",): 70}
    assert {name: of[()] for name, of in found.items() if name in COPIED} == dict(
        zip(COPIED, (40, 30, 20, 10, 2.5, 1.5), strict=True)
    )
    assert [name for name, of in found.items() if name.startswith("kafka_controller_") and of] == []


def test_the_controller_tells_of_the_cluster() -> None:
    found = values(controller())

    assert {name.removeprefix(CONTROLLER): of for name, of in found.items() if name.startswith(CONTROLLER)} == {
        "activecontrollercount": {(): 1},
        "activebrokercount": {(): 2},
        "fencedbrokercount": {(): 1},
        "offlinepartitionscount": {(): 5},
    }
    assert (found[f"{ELECTIONS}_count"], found[f"{WAITS}_count"]) == ({(): 1}, {(): 2})
    assert (found[ELECTIONS]["0.99",], found[WAITS]["0.99",]) == (4, 2)
    assert found[f"{REPLICAS}atminisrpartitioncount"] == {(): 1}


def test_a_controller_that_takes_no_changes_does_not_count() -> None:
    assert values(controller(is_active=False))[f"{CONTROLLER}activecontrollercount"] == {(): 0}


def test_a_controller_tells_how_it_stands_in_the_quorum() -> None:
    figures = QuorumFigures(2, 7, "follower", 90, 100, 3, 12.5, 20.0, 1.5, 4.0)
    found = values(member=SimpleNamespace(partition_counts=counts()), quorum=figures)

    assert {name.removeprefix(RAFT): of for name, of in found.items() if name.startswith(RAFT)} == {
        "current_leader": {(): 2},
        "current_epoch": {(): 7},
        "current_state": {("follower",): 1},
        "high_watermark": {(): 90},
        "log_end_offset": {(): 100},
        "number_of_voters": {(): 3},
        "election_latency_avg": {(): 12.5},
        "election_latency_max": {(): 20.0},
        "commit_latency_avg": {(): 1.5},
        "commit_latency_max": {(): 4.0},
    }


def test_before_the_metadata_is_read_nothing_is_told_and_a_broker_alone_follows_nobody() -> None:
    found = values()

    assert {name for name, of in found.items() if of} == {
        f"{REPLICAS}isrshrinks_total",
        f"{REPLICAS}isrexpands_total",
        "kafka_server_replicafetchermanager_maxlag",
        *COPIED,
    }
    assert found["kafka_server_replicafetchermanager_maxlag"] == {("Replica",): 0}


def test_every_metric_of_the_cluster_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text()

    assert [name for name in values() if f"`{name}`" not in page] == []
