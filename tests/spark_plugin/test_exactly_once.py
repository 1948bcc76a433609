"""Every record is seen once: whoever dies at whichever request, however often, and with other runs still alive."""

import random
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.errors import BrokerError, ProducerFencedError, TransactionFatalError
from odradek.kernel.peers.errors import ClientError
from odradek.spark_plugin.writing.transaction_steps import Pause
from odradek.spark_plugin.writing.transactions import PartitionOfBatch, ReplayDiffersError, abort_all, commit_all
from tests.spark_plugin.fake_queries import (
    ANCHOR,
    Acts,
    Checkpoint,
    DriverDiedError,
    Query,
    TaskDiedError,
    drive,
    drive_steps,
    expected,
    take,
)
from tests.spark_plugin.fake_transactions import FakeCluster

BATCHES = 2
REQUESTS_MAX = 90
"""More than a run of two batches takes."""


def finish(cluster: FakeCluster, checkpoint: Checkpoint, deaths: list[tuple[int, str, bool]]) -> None:
    """Run the query until it is done, starting it again whenever a run fails."""
    remaining = iter(deaths)
    for number in count():
        assert number < 12, "the query does not come to its end"
        try:
            drive(cluster, Query(cluster, checkpoint, f"run-{number}", BATCHES).acts(), deaths=remaining)
        except (DriverDiedError, TaskDiedError, ClientError):
            continue
        break
    cluster.settle()


def check(cluster: FakeCluster) -> None:
    """Look at what a read-committed consumer sees."""
    assert sorted(cluster.committed) == expected(BATCHES)


@pytest.mark.parametrize("is_v2", [False, True])
def test_undisturbed_batches_are_written_once_and_claimed_once(is_v2: bool) -> None:
    cluster = FakeCluster(is_v2)
    finish(cluster, Checkpoint(), [])

    check(cluster)
    assert cluster.requests_count < REQUESTS_MAX
    assert cluster.open_transactions == []
    assert cluster.offsets["odradek-Q-0-run", ANCHOR] == (0, '{"run":"run-0"}')
    assert cluster.offsets["odradek-Q-1", ANCHOR] == (2, '{"batch":1,"rows":2}')


@pytest.mark.parametrize("attempt", [1, 3, 4, 5, 9])
def test_what_earlier_attempts_left_open_is_aborted_however_many_there_were(attempt: int) -> None:
    cluster = FakeCluster(is_v2=True)
    query = Query(cluster, Checkpoint(), "run", 1)
    for earlier in range(attempt):
        drive(cluster, query.task(0, 0, earlier))  # Spark lost its message
    written = drive(cluster, query.task(0, 0, attempt))

    assert drive_steps(cluster, commit_all(query.coordination, [written])) == 1
    cluster.settle()
    assert cluster.open_transactions == []
    assert cluster.committed == ["0/0/0", "0/0/1"]


@pytest.mark.parametrize("is_v2", [False, True])
@pytest.mark.parametrize("who", ["driver", "task", "answer"])
@pytest.mark.parametrize("is_done", [False, True])
def test_a_death_at_any_request_loses_and_doubles_nothing(is_v2: bool, who: str, is_done: bool) -> None:
    for at in range(1, REQUESTS_MAX):
        cluster = FakeCluster(is_v2)
        finish(cluster, Checkpoint(), [(at, who, is_done)])

        assert sorted(cluster.committed) == expected(BATCHES), f"died at request {at}"
        assert cluster.open_transactions == [], f"died at request {at}: readers would wait for what is open"


@pytest.mark.parametrize("is_v2", [False, True])
def test_two_deaths_at_any_two_requests_lose_and_double_nothing(is_v2: bool) -> None:
    for first in range(1, REQUESTS_MAX, 3):
        for second in range(first + 1, first + 40, 5):
            cluster = FakeCluster(is_v2)
            finish(cluster, Checkpoint(), [(first, "driver", True), (second, "driver", (first + second) % 2 == 0)])

            assert sorted(cluster.committed) == expected(BATCHES), f"died at requests {first} and {second}"


@settings(max_examples=60)
@given(
    st.booleans(),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(1, 25), st.sampled_from(["driver", "task", "answer"]), st.booleans()), max_size=5),
)
def test_many_deaths_lose_and_double_nothing(is_v2: bool, lag: int, gaps: list[tuple[int, str, bool]]) -> None:
    at = 0
    deaths = []
    for gap, who, is_done in gaps:
        at += gap
        deaths.append((at, who, is_done))
    cluster = FakeCluster(is_v2, lag)
    finish(cluster, Checkpoint(), deaths)

    check(cluster)


class Actor:
    """A run that goes on one step at a time, while others do so too."""

    def __init__(self, cluster: FakeCluster, acts: Acts) -> None:
        self.cluster = cluster
        self.acts = acts
        self.step = next(acts)
        self.is_done = False
        self.error: Exception | None = None
        self.result: object = None

    def advance(self) -> None:
        """Do one request."""
        try:
            try:
                answer = take(self.cluster, self.step)
            except ClientError as error:
                self.step = self.acts.throw(error)
            else:
                self.step = self.acts.send(answer)
            while isinstance(self.step, Pause):
                self.step = self.acts.send(None)
        except StopIteration as stop:
            self.is_done, self.result = True, stop.value
        except (ClientError, TaskDiedError) as error:
            self.is_done, self.error = True, error


def play(actors: list[Actor], random_source: random.Random) -> None:
    """Let actors go on in any order, each for a while, until all are done."""
    for _ in range(5_000):
        alive = [actor for actor in actors if not actor.is_done]
        if not alive:
            return
        actor = random_source.choice(alive)
        for _ in range(random_source.choice((1, 1, 2, 5, 30))):
            if not actor.is_done:
                actor.advance()
    raise AssertionError("the runs do not come to an end")


@pytest.mark.parametrize("is_v2", [False, True])
@pytest.mark.parametrize("runs_count", [2, 3])
def test_runs_that_are_alive_at_the_same_time_double_nothing(is_v2: bool, runs_count: int) -> None:
    for seed in range(70):
        random_source = random.Random(seed)
        cluster = FakeCluster(is_v2, lag=random_source.randrange(1, 6))
        checkpoint = Checkpoint()
        runs = [Query(cluster, checkpoint, f"zombie-{number}", BATCHES).acts() for number in range(runs_count)]
        play([Actor(cluster, run) for run in runs], random_source)
        finish(cluster, checkpoint, [])

        assert sorted(cluster.committed) == expected(BATCHES), f"seed {seed}"


@pytest.mark.parametrize("is_v2", [False, True])
def test_attempts_of_one_run_never_take_from_each_other_what_the_driver_accepted(is_v2: bool) -> None:
    for seed in range(50):
        random_source = random.Random(seed)
        cluster = FakeCluster(is_v2, lag=random_source.randrange(1, 6))
        query = Query(cluster, Checkpoint(), "run", 1)
        drive(cluster, query.acts())  # the run has its claims; now its next batch, with two attempts at one partition
        attempts = [Actor(cluster, query.task(1, 0, number)) for number in range(2)]
        while not any(actor.is_done for actor in attempts):
            random_source.choice(attempts).advance()
        accepted = next(actor for actor in attempts if actor.is_done)
        other = next(actor for actor in attempts if actor is not accepted)
        for _ in range(random_source.randrange(12)):
            if not other.is_done:
                other.advance()
        committed = drive_steps(cluster, commit_all(query.coordination, [accepted.result]))  # type: ignore[list-item]
        cluster.settle()

        assert accepted.error is None
        assert committed == 1
        assert sorted(record for record in cluster.committed if record.startswith("1/")) == ["1/0/0", "1/0/1"]


def test_a_transaction_that_took_too_long_is_told_of_and_written_anew() -> None:
    cluster = FakeCluster()
    checkpoint = Checkpoint()
    query = Query(cluster, checkpoint, "run", BATCHES)
    written = [drive(cluster, query.task(0, number, 0)) for number in range(2)]
    cluster.expire("odradek-Q-1-0")

    with pytest.raises(
        TransactionFatalError, match=r"transaction.timeout.ms=200.*committed before: 1 partitions \[0\]"
    ):
        drive_steps(cluster, commit_all(query.coordination, written))
    assert drive_steps(cluster, abort_all(query.coordination, written)) == []
    finish(cluster, checkpoint, [])
    check(cluster)


def test_a_commit_may_be_repeated() -> None:
    for is_v2 in (False, True):
        cluster = FakeCluster(is_v2)
        query = Query(cluster, Checkpoint(), "run", BATCHES)
        written = [drive(cluster, query.task(0, number, 0)) for number in range(2)]
        committed = [drive_steps(cluster, commit_all(query.coordination, written)) for _ in range(2)]
        drive(cluster, query.task(1, 0, 0))  # the next batch has the ids by now

        assert committed == [2, 2]
        assert drive_steps(cluster, commit_all(query.coordination, written)) == 2
        assert len(cluster.committed) == 4


def test_a_batch_whose_replay_has_other_rows_is_refused() -> None:
    cluster = FakeCluster()
    checkpoint = Checkpoint()
    drive(cluster, Query(cluster, checkpoint, "run", 1).acts())
    again = PartitionOfBatch(Query(cluster, checkpoint, "run-2", 1).coordination, "Q", "run-2", 0, 0, 0, ANCHOR)

    assert drive_steps(cluster, again.begin()) is False
    again.check_replay(2)
    with pytest.raises(ReplayDiffersError, match="committed with 2 rows, and has 3"):
        again.check_replay(3)


def test_a_run_that_is_behind_does_not_take_a_partition_back() -> None:
    cluster = FakeCluster()
    checkpoint = Checkpoint()
    old = Query(cluster, checkpoint, "old", 9)
    drive(cluster, Query(cluster, checkpoint, "young", 3).acts())
    cluster.offsets["odradek-Q-0-run", ANCHOR] = (2, '{"run":"young"}')

    with pytest.raises(ProducerFencedError, match="run young was at batch 2 already"):
        drive(cluster, old.task(1, 0, 0))


def test_what_a_coordinator_refuses_is_said_with_advice() -> None:
    from odradek.kernel.errors import ErrorCode
    from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdResponse

    steps = Query(FakeCluster(), Checkpoint(), "run", 1).coordination.init_producer_id("odradek-Q-0-0")
    next(steps)

    with pytest.raises(BrokerError, match=r"transaction\.max\.timeout\.ms"):
        steps.send(InitProducerIdResponse(error_code=ErrorCode.INVALID_TRANSACTION_TIMEOUT))
