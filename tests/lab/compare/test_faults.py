"""What happens to brokers, to which of them, and what is made of what clients then had."""

from __future__ import annotations

import random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.config.registry import Registry
from odradek.kernel.errors import ConfigError
from odradek.lab.compare.deliveries import Deliveries
from odradek.lab.compare.faults import BY_NAME, Cluster, Wait, longest_silence_s, read_faults
from odradek.lab.compare.ledger import Ledger
from odradek.lab.compare.preflight import reason_against
from odradek.lab.compare.record_plan import RecordPlan
from odradek.lab.compare.variations import COMBINATIONS_MAX, under_faults
from odradek.lab.compare.workload import Workload, check_for_cluster
from tests.lab.compare.results import combination

PLAN = RecordPlan(Workload("few", records=6, paced_records=2, partitions=1), random.Random(3))


def read(ledger: Ledger, *placed: int) -> Deliveries:
    """Read a log of one partition that has these records, by their numbers."""
    found = Deliveries(ledger)
    for offset, index in enumerate(placed):
        found.take(0, offset, *PLAN.record(index)[1:])
    return found


def counts(found: Deliveries) -> tuple[int, int, int, int]:
    return found.acknowledged, found.lost, found.doubled, found.wrong


@pytest.mark.parametrize(
    ("name", "struck"),
    [
        ("none", ()),
        ("leader-killed", (2,)),
        ("leader-paused", (2,)),
        ("follower-killed", (1,)),
        ("slow-follower", (1,)),
        ("two-of-three", (2, 1)),
    ],
)
def test_a_fault_strikes_whom_its_name_says(name: str, struck: tuple[int, ...]) -> None:
    assert BY_NAME[name].targets(2, (1, 2, 3)) == struck


@pytest.mark.parametrize(
    ("text", "replicas", "told"),
    [
        ("leader-kiled", 3, "did you mean 'leader-killed'?"),
        ("rain", 3, "known: none, leader-killed"),
        ("none,none", 3, "given twice"),
        ("none,two-of-three", 2, "needs 3 replicas"),
    ],
)
def test_a_fault_that_cannot_be_is_told_before_anything_runs(text: str, replicas: int, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_faults(text, Cluster(3, replicas))


def test_every_combination_stands_under_every_fault() -> None:
    elections = [combination("isr", keys=("odradek.election",)), combination("quorum", keys=("odradek.election",))]
    labels = [each.label for each in under_faults(elections, read_faults("none,leader-killed", Cluster()))]

    assert labels == ["isr · none", "quorum · none", "isr · leader-killed", "quorum · leader-killed"]
    assert under_faults(elections, ("",)) == elections
    with pytest.raises(ConfigError, match="more than"):
        under_faults(elections * COMBINATIONS_MAX, ("none",))


def acknowledged_at(*moments_s: float, partition: int = 0) -> list[Wait]:
    """Return records of one partition that were due all along, and acknowledged then."""
    return [Wait(partition, 0.0, moment_s) for moment_s in moments_s]


def test_the_longest_silence_is_counted_from_the_fault_on() -> None:
    waits = acknowledged_at(0.0, 9.0, 9.9, 12.5, 12.6, 13.0)
    given_up = [Wait(0, 12.0, 20.0, is_acknowledged=False), Wait(0, 12.0, 15.0, is_acknowledged=False)]

    assert longest_silence_s(waits, 10.0) == 2.5
    assert longest_silence_s([*waits, *given_up], 10.0) == 7.0
    assert longest_silence_s([Wait(0, 9.0, 14.0, is_acknowledged=False)], 10.0) == 4.0
    assert longest_silence_s([], 10.0) == 0.0


def test_a_partition_that_is_silent_is_not_heard_through_the_others() -> None:
    """The fault strikes who leads the first one: the other goes on."""
    silent = [Wait(0, number / 100, max(number / 100, 9.0)) for number in range(1_000)]
    others = [Wait(1, number / 100, number / 100 + 0.01) for number in range(1_000)]

    assert longest_silence_s([*silent, *others], 0.0) == 9.0
    assert longest_silence_s(others, 0.0) == pytest.approx(0.01)


def test_a_partition_that_nobody_asks_is_not_silent() -> None:
    waits = [Wait(0, 1.0, 1.1), Wait(0, 8.0, 8.3), Wait(1, 2.0, 2.1)]

    assert longest_silence_s(waits, 0.0) == pytest.approx(0.3)


@given(
    st.lists(
        st.builds(
            lambda partition, due_s, late_s, is_acknowledged: Wait(partition, due_s, due_s + late_s, is_acknowledged),
            st.integers(0, 2),
            st.floats(0, 100),
            st.floats(0, 100),
            st.booleans(),
        )
    ),
    st.floats(0, 100),
)
def test_a_silence_is_no_longer_than_what_is_left_and_than_the_latest_record_waited(
    waits: list[Wait], since_s: float
) -> None:
    ends_s = [each.ended_s for each in waits if each.ended_s > since_s]
    silence_s = longest_silence_s(waits, since_s)

    assert 0 <= silence_s <= max(ends_s, default=since_s) - since_s
    if all(each.is_acknowledged for each in waits):
        assert silence_s <= max((each.ended_s - each.due_s for each in waits), default=0.0)


def test_what_is_acknowledged_and_there_is_neither_lost_nor_doubled() -> None:
    ledger = Ledger(PLAN)
    for offset in range(3):
        ledger.acknowledge(offset, 0, offset)

    assert counts(read(ledger, 0, 1, 2)) == (3, 0, 0, 0)


def test_a_record_that_nobody_was_told_of_is_neither_lost_nor_wrong() -> None:
    assert counts(read(Ledger(PLAN), 0, 1)) == (0, 0, 0, 0)


def test_what_is_not_where_it_was_acknowledged_is_lost() -> None:
    ledger = Ledger(PLAN)
    ledger.acknowledge(0, 0, 0)
    ledger.acknowledge(1, 0, 1)
    ledger.acknowledge(2, 0, 9)

    assert counts(read(ledger, 1, 0)) == (3, 3, 0, 0)


def test_a_record_whose_place_another_one_got_is_lost() -> None:
    ledger = Ledger(PLAN)
    ledger.acknowledge(0, 0, 0)
    ledger.acknowledge(1, 0, 0)

    assert counts(read(ledger, 1)) == (2, 1, 0, 0)


def test_a_record_that_is_there_twice_is_doubled_whether_it_was_acknowledged_or_not() -> None:
    ledger = Ledger(PLAN)
    ledger.acknowledge(0, 0, 1)

    assert counts(read(ledger, 0, 0, 3, 3, 3)) == (1, 0, 3, 0)


def test_what_was_never_sent_is_wrong() -> None:
    found = Deliveries(Ledger(PLAN))
    partition, key, value = PLAN.record(0)
    assert value is not None
    found.take(partition, 0, key, value[:-1] + b"!")
    found.take(partition, 1, key, None)
    found.take(partition, 2, key, (99).to_bytes(8, "big"))
    found.take(partition + 1, 3, key, value)

    assert counts(found) == (0, 0, 0, 4)


def test_a_topic_whose_cleanup_removes_records_is_not_compared_under_faults() -> None:
    one = attrs.evolve(combination("compact", keys=("cleanup.policy",)), broker={}, fault="none")
    workload = Workload("keyed", keys=5)

    assert "could not be told from what is lost" in reason_against(one, workload, Registry.of())


@pytest.mark.parametrize(
    ("workload", "told"),
    [
        (Workload("some", transaction_records=5), "neither transactions nor tombstones"),
        (Workload("some", keys=5, tombstones=0.5), "neither transactions nor tombstones"),
        (Workload("some", paced_records=0), "set `paced_records`"),
        (Workload("some", producer={"acks": "0"}), "nobody knows what was taken"),
    ],
)
def test_a_workload_that_says_nothing_under_faults_is_refused(workload: Workload, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_for_cluster(workload, "here")

    assert told in str(caught.value)
