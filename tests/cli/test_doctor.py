"""What a doctor finds in what is seen of a cluster: causes told apart, in words, with what to do."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from odradek.cli.doctor import metrics_page, procfs
from odradek.cli.doctor.findings import findings_of
from odradek.cli.doctor.observations import BrokerSeen, Finding, HostSeen, Look, Observations, ProcessSeen, Severity
from odradek.client.admin_values import LogDir, QuorumDescription, QuorumReplica, Reassignment
from odradek.client.cluster import PartitionInfo, TopicInfo
from odradek.kernel.types import ZERO_ID, TopicPartition

KB = 1000


def partition(number: int, leader: int, replicas: Sequence[int], isr: Sequence[int] | None = None) -> PartitionInfo:
    return PartitionInfo("t", number, leader, 0, tuple(replicas), tuple(replicas if isr is None else isr))


def look(at_s: float, partitions: Sequence[PartitionInfo], sizes: Mapping[int, Sequence[int]] | None = None) -> Look:
    """Partitions 0, 1, ... of one topic; by broker, how large its replicas of them are."""
    topic = TopicInfo("t", uuid.UUID(int=1), False, {each.partition: each for each in partitions})
    by_broker = {
        broker: {TopicPartition("t", number): size for number, size in enumerate(each)}
        for broker, each in (sizes or {}).items()
    }
    return Look(at_s, {"t": topic}, by_broker)


def quorum(*fetched_ms: int, leader: int = 1) -> QuorumDescription:
    voters = tuple(QuorumReplica(number, ZERO_ID, 10, each, each) for number, each in enumerate(fetched_ms, 1))
    return QuorumDescription(leader, 5, 10, voters, ())


def seen(
    partitions: Sequence[PartitionInfo],
    before: Mapping[int, Sequence[int]] | None = None,
    after: Mapping[int, Sequence[int]] | None = None,
    **more: Any,
) -> Observations:
    """Three brokers that are well, and these partitions, looked at ten seconds apart."""
    brokers = {number: BrokerSeen(number, cluster_id="c", leader=(1, 5)) for number in (1, 2, 3)}
    brokers |= more.pop("brokers", {})
    looks = (look(0, partitions, before), look(10, partitions, after))
    return Observations(brokers, more.pop("quorum", quorum(1000, 1000, 1000)), *looks, **more)


def found(observations: Observations) -> list[tuple[str, int | None]]:
    return [(each.name, each.broker) for each in findings_of(observations)]


def only(observations: Observations) -> Finding:
    (finding,) = findings_of(observations)
    return finding


IN_SYNC = [partition(0, 1, [1, 2]), partition(1, 2, [2, 3]), partition(2, 3, [3, 1])]
TWO_WITHOUT_3 = [partition(0, 1, [1, 3], [1]), partition(1, 2, [2, 3], [2]), partition(2, 1, [1, 2])]


def test_nothing_is_found_in_a_cluster_that_is_well() -> None:
    assert found(seen(IN_SYNC)) == []


# ------------------------------------------------------------------------------ replicas


def test_a_broker_that_is_down_explains_its_replicas() -> None:
    finding = only(seen(TWO_WITHOUT_3, brokers={3: BrokerSeen(3, is_fenced=True)}))

    assert (finding.name, finding.broker, finding.severity) == ("broker-down", 3, Severity.WRONG)
    assert finding.what == "broker 3 is down: of its 2 replicas 2 are missing from the in-sync sets"
    assert "odradek cluster drain 3 --replicas" in finding.remedy


def test_a_broker_that_answers_nobody_is_told_once() -> None:
    finding = only(seen(TWO_WITHOUT_3, brokers={3: BrokerSeen(3, error="no answer within 5 s")}))

    assert (finding.name, finding.broker, finding.severity) == ("broker-unreached", 3, Severity.WRONG)
    assert "2 replicas of it are missing from the in-sync sets: it hangs, or is cut off" in finding.what


def test_a_disk_that_failed_explains_its_brokers_replicas() -> None:
    failed = LogDir("/data/two", True, -1, -1, ())
    finding = only(seen(TWO_WITHOUT_3, brokers={3: BrokerSeen(3, log_dirs=[failed])}))

    assert (finding.name, finding.broker) == ("disk-failed", 3)
    assert "directory /data/two of broker 3 failed" in finding.what


@pytest.mark.parametrize(
    ("before", "after", "name", "severity"),
    [
        ([50 * KB, 50 * KB], [50 * KB, 50 * KB], "broker-stuck", Severity.WRONG),
        ([50 * KB, 50 * KB], [51 * KB, 51 * KB], "broker-slow", Severity.WRONG),
        ([50 * KB, 50 * KB], [90 * KB, 70 * KB], "broker-returned", Severity.NOTE),
    ],
)
def test_a_broker_that_lags_with_all_that_it_follows_is_stuck_slow_or_back(
    before: list[int], after: list[int], name: str, severity: Severity
) -> None:
    grown = 100 * KB if severity is Severity.NOTE else 110 * KB
    leaders = {1: [100 * KB, 0, 0], 2: [0, 100 * KB, 0]}
    later = {1: [grown, 0, 0], 2: [0, grown, 0]}
    finding = only(seen(TWO_WITHOUT_3, {**leaders, 3: before}, {**later, 3: after}))

    assert (finding.name, finding.broker, finding.severity) == (name, 3, severity)


def test_who_catches_up_is_told_how_long_it_takes() -> None:
    leaders = {1: [100 * KB, 0, 0], 2: [0, 100 * KB, 0]}
    finding = only(seen(TWO_WITHOUT_3, {**leaders, 3: [0, 0]}, {**leaders, 3: [50 * KB, 20 * KB]}))

    assert finding.what == "broker 3 came back, and catches up: 130 kB to go, about 40 s"


def test_all_that_one_broker_leads_lags_so_it_feeds_slowly() -> None:
    partitions = [partition(0, 1, [1, 2], [1]), partition(1, 1, [1, 3], [1]), partition(2, 2, [2, 3])]
    finding = only(seen(partitions))

    assert (finding.name, finding.broker) == ("leader-slow", 1)
    assert "all 2 partitions that broker 1 leads lag, with several followers" in finding.what


ONE_OF_MANY = [partition(0, 1, [1, 2], [1]), partition(1, 1, [1, 2]), partition(2, 3, [3, 2]), partition(3, 1, [1, 3])]


@pytest.mark.parametrize(
    ("leader", "follower", "name"),
    [
        ((10, 10), (5, 5), "replicas-stuck"),
        ((10, 20), (5, 8), "replicas-slow"),
        ((10, 10), (5, 8), "replicas-returned"),
        ((10, 10), (5, 10), "replicas-joining"),
    ],
)
def test_a_replica_by_itself_is_judged_by_how_it_grows(
    leader: tuple[int, int], follower: tuple[int, int], name: str
) -> None:
    first, second = ({1: [leader[at]], 2: [follower[at]]} for at in (0, 1))

    assert found(seen(ONE_OF_MANY, first, second)) == [(name, 2)]


def test_of_a_replica_of_which_no_size_is_known_no_more_is_said() -> None:
    assert found(seen(ONE_OF_MANY)) == [("replicas-unknown", 2)]


def test_a_replica_that_a_reassignment_adds_is_no_fault() -> None:
    moving = {TopicPartition("t", 0): Reassignment((1, 2), (2,), ())}
    sizes = {1: [100 * KB], 2: [40 * KB]}
    finding = only(seen(ONE_OF_MANY, sizes, sizes, ongoing=moving))

    assert (finding.name, finding.severity) == ("replicas-raised", Severity.NOTE)
    assert finding.what.endswith("60 kB to go")


def test_of_a_replica_that_is_added_it_is_told_that_nobody_knows_how_much_it_lacks() -> None:
    moving = {TopicPartition("t", 0): Reassignment((1, 2), (2,), ())}
    sizes = {2: [40 * KB]}
    finding = only(seen(ONE_OF_MANY, sizes, sizes, ongoing=moving))

    assert finding.what.endswith("0 B to go, but for 1 whose leader could not say how large it is")


def test_who_takes_nothing_does_not_catch_up_though_its_leader_loses_what_is_kept_no_longer() -> None:
    before, after = {1: [100 * KB], 2: [40 * KB]}, {1: [80 * KB], 2: [40 * KB]}

    assert found(seen(ONE_OF_MANY, before, after)) == [("replicas-stuck", 2)]


# ------------------------------------------------------------------------------ metadata


def test_without_a_leader_of_the_metadata_nothing_can_change() -> None:
    assert found(seen(IN_SYNC, quorum=None, quorum_error="no answer")) == [("no-quorum", None)]
    assert found(seen(IN_SYNC, quorum=quorum(0, leader=-1))) == [("no-quorum", None)]


@pytest.mark.parametrize(
    ("fetched_ms", "severity", "left"),
    [
        ((60_000, 59_900, 1), Severity.WRONG, "one more away, and nobody leads the metadata"),
        ((60_000, 59_900, 59_900, 59_900, 1), Severity.WARNING, "1 more may be away"),
    ],
)
def test_voters_that_are_silent_are_told_with_how_many_more_may_be(
    fetched_ms: tuple[int, ...], severity: Severity, left: str
) -> None:
    finding = only(seen(IN_SYNC, quorum=quorum(*fetched_ms)))

    assert (finding.name, finding.severity) == ("voters-silent", severity)
    assert finding.what.endswith(left)


def test_two_controllers_of_one_epoch_are_told_by_what_brokers_say_or_by_metrics() -> None:
    said = seen(IN_SYNC, brokers={3: BrokerSeen(3, leader=(2, 5))})
    shown = {number: BrokerSeen(number, leader=(1, 5), is_active_controller=number < 3) for number in (1, 2, 3)}

    assert "1 and 2 both act as the controller, in epoch 5" in only(said).what
    assert found(seen(IN_SYNC, brokers=shown)) == [("two-controllers", None)]


def test_an_older_epoch_is_no_second_controller() -> None:
    assert found(seen(IN_SYNC, brokers={3: BrokerSeen(3, leader=(2, 4))})) == [("controller-unknown", 3)]


def test_brokers_of_two_clusters_are_told() -> None:
    assert found(seen(IN_SYNC, brokers={3: BrokerSeen(3, cluster_id="d")})) == [("two-clusters", None)]


def test_a_partition_that_nobody_leads_is_told_with_who_had_its_records() -> None:
    partitions = [*IN_SYNC, partition(3, -1, [3, 2], [3])]
    findings = findings_of(seen(partitions, brokers={3: BrokerSeen(3, is_fenced=True)}))

    assert [each.name for each in findings] == ["no-leader", "broker-down", "replicas-unknown"]
    assert "broker 3 had all records, and is away" in findings[0].what


def test_fewer_in_sync_than_the_topic_wants_is_told() -> None:
    sizes = {1: [5], 2: [5]}

    assert found(seen(ONE_OF_MANY, sizes, sizes, in_sync_min={"t": 2})) == [
        ("under-min-isr", None),
        ("replicas-joining", 2),
    ]


def test_leaders_that_are_elsewhere_after_a_return_are_told() -> None:
    partitions = [partition(0, 2, [1, 2]), partition(1, 1, [1, 3]), partition(2, 3, [2, 3])]
    findings = findings_of(seen(partitions))

    assert [(each.name, each.broker) for each in findings] == [("leaders-away", 1), ("leaders-away", 2)]
    assert "odradek elect" in findings[0].remedy


def test_a_broker_that_is_new_has_nothing_until_a_plan_is_made() -> None:
    partitions = [partition(number, 1 + number % 2, [1 + number % 2, 2 - number % 2]) for number in range(20)]
    finding = only(seen(partitions))

    assert (finding.name, finding.broker) == ("preferred-skewed", 3)
    assert "odradek reassign generate" in finding.remedy


# ------------------------------------------------------------------------------ hosts


def test_what_a_broker_lacks_is_told() -> None:
    full = LogDir("/data", False, 1000, 49, ())
    brokers = {
        1: BrokerSeen(1, error="no answer within 5 s"),
        2: BrokerSeen(2, idle_share=0.2),
        3: BrokerSeen(3, log_dirs=[full], idle_share=0.9),
    }

    assert found(seen(IN_SYNC, brokers=brokers)) == [("broker-unreached", 1), ("broker-busy", 2), ("disk-full", 3)]


def test_what_this_host_lacks_is_told() -> None:
    host = HostSeen([ProcessSeen(1, 77, 900, 1000), ProcessSeen(2, 78, 90, 1000)], 4096, 3, {"sda": 80, "sdb": 5})

    assert found(seen(IN_SYNC, host=host)) == [("files-limit", 1), ("host-swaps", None), ("disk-slow", None)]
    assert found(seen(IN_SYNC, host=attrs.evolve(host, processes=[], swapped_bytes=0, disk_ms={}))) == []


def test_retry_topics_whose_dead_letters_are_paused_are_told_whoever_leads_them() -> None:
    brokers = {
        1: BrokerSeen(1, paused_retries={"orders.billing.retry": 2}),
        2: BrokerSeen(2, paused_retries={"orders.billing.retry": 1, "a.retry": 1}),
    }

    findings = findings_of(seen(IN_SYNC, brokers=brokers))

    assert [(each.name, each.severity) for each in findings] == [("dead-letters-paused", Severity.WARNING)] * 2
    assert [each.what for each in findings] == [
        "too much of a.retry would be dead at once, in 1 partition: it waits and is given back",
        "too much of orders.billing.retry would be dead at once, in 3 partitions: it waits and is given back",
    ]


@pytest.mark.parametrize(
    ("page", "idle_share", "is_active"),
    [
        (
            b"# TYPE kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent gauge\n"
            b"kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.25\n"
            b"kafka_controller_kafkacontroller_activecontrollercount 1\n",
            0.25,
            True,
        ),
        (b"kafka_controller_kafkacontroller_activecontrollercount{node='1'} 0\n", None, False),
        (b"", None, None),
    ],
)
def test_how_idle_a_broker_is_and_who_is_the_controller_is_read_of_metrics(
    page: bytes, idle_share: float | None, is_active: bool | None
) -> None:
    assert metrics_page.idle_share(page) == idle_share
    assert metrics_page.is_active_controller(page) is is_active


def test_which_dead_letters_are_paused_is_read_of_metrics() -> None:
    page = (
        b"# TYPE odradek_retry_paused gauge\n"
        b'odradek_retry_paused{topic="b.retry"} 2\n'
        b'odradek_retry_paused{topic="a.retry"} 0\n'
    )

    assert metrics_page.paused_retries(page) == {"b.retry": 2}
    assert metrics_page.paused_retries(b"") == {}


def test_the_ports_of_listening_sockets_are_read() -> None:
    text = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0\n"
        "   1: 0100007F:2385 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0\n"
    )

    assert procfs.listening(text) == {"4711": 9092}


def test_a_limit_of_files_is_read() -> None:
    assert (
        procfs.files_max("Limit  Soft Limit  Hard Limit  Units\nMax open files            1024    4096    files\n")
        == 1024
    )
    assert procfs.files_max("Max open files            unlimited    unlimited    files\n") is None


def test_swapped_pages_are_read() -> None:
    assert procfs.swapped_pages("nr_free_pages 7\npswpin 3\npswpout 4\n") == 7


def test_how_long_a_disk_takes_is_what_was_between_two_looks() -> None:
    def line(name: str, reads: int, ms: int) -> str:
        return f" 8 0 {name} {reads} 0 0 {ms} 0 0 0 0 0 0 0\n"

    before = procfs.disk_times(line("sda", 100, 5000) + line("sda1", 1, 1) + line("loop0", 1, 1))
    after = procfs.disk_times(line("sda", 200, 7000) + line("nvme0n1", 5, 500) + line("nvme0n1p1", 5, 500))

    assert before == {"sda": (100, 5000)}
    assert sorted(after) == ["nvme0n1", "sda"]
    assert procfs.request_ms(before, after, 20) == {"sda": 20.0}
