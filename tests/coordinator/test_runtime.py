"""The runtime over real replicas: batches, order, commitment, failures, timers, transactions."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.coordinator import ProducerIdentity
from odradek.kernel.coordinator import hosted_shard
from odradek.kernel.coordinator.open_batch import record_size_max
from odradek.kernel.errors import ErrorCode, KafkaError, PluginError, StorageError
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.records.batch import HEADER_SIZE, BatchHeader, iterate_batches
from odradek.testing.shard_harness import RecordingWaiter
from tests.one_object import patch_one

from .hosting import RULES, TOPIC, World
from .toy import Added, CounterCoordinator, CounterShard, Result

ONE = ProducerIdentity(7, 3)


def opened(**options: object) -> World:
    world = World()
    world.open(**options)  # type: ignore[arg-type] # as given
    return world


def followed() -> World:
    """Return a world in which nothing is committed before broker 2 has it."""
    world = opened(isr=(1, 2), replicas=(1, 2))
    world.follower_has(0)
    return world


def batches(world: World) -> list[BatchHeader]:
    return [header for _position, header in iterate_batches(world.log())]


# --------------------------------------------------------------------------------------------------- batches and order


def test_an_operation_is_answered_when_its_turn_has_ended() -> None:
    world = opened()
    waiter = world.add("a", 5)
    assert not waiter.is_done
    assert world.turns_wanted
    world.turn()

    assert waiter.response == 5


def test_results_of_one_turn_share_a_batch() -> None:
    world = opened()
    waiters = [world.add("a", 1) for _ in range(10)]
    world.turn()
    world.add("a", 1)
    world.turn()

    assert [waiter.response for waiter in waiters] == list(range(1, 11))
    assert [header.records_count for header in batches(world)] == [10, 1]
    assert world.shard().offsets == list(range(11))


def test_a_full_batch_is_followed_by_another_and_no_atomic_result_is_split() -> None:
    world = opened()
    per_result = 10
    fitting = (RULES.max_message_bytes - HEADER_SIZE) // (record_size_max((b"add a", b"1")) * per_result)
    for _ in range(fitting + 1):
        world.add("a", 1, times=per_result)
    world.turn()

    assert [header.records_count for header in batches(world)] == [fitting * per_result, per_result]
    assert all(header.length_bytes <= RULES.max_message_bytes for header in batches(world))


def test_a_result_that_may_be_split_fills_batches() -> None:
    world = opened()
    waiter = world.add("a", 1, times=500, is_atomic=False)
    world.turn()

    assert waiter.response == 500
    assert len(batches(world)) > 1
    assert world.shard().offsets == list(range(500))


def test_what_does_not_fit_is_refused_and_nothing_is_replayed() -> None:
    world = opened()
    waiter = world.add("a", 1, times=500)
    one_too_large = world.add("n" * 3000, 1, is_atomic=False)

    assert waiter.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert one_too_large.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.shard().counters == {}


def test_a_read_waits_for_what_it_saw() -> None:
    world = opened()
    write, read = world.add("a", 5), world.read("a")
    assert not read.is_done
    world.turn()

    assert (write.response, read.response) == (5, 5)
    assert world.read("a").response == 5


def test_answers_keep_their_order_and_wait_for_the_high_watermark() -> None:
    world = followed()
    told: list[str] = []

    class Telling(RecordingWaiter):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def answer(self, response: object) -> None:
            super().answer(response)
            told.append(self.name)

        def fail(self, error: KafkaError) -> None:
            super().fail(error)
            told.append(self.name)

    def submit(name: str, amount: int | None) -> None:
        def operation(shard: CounterShard, _now_ms: int) -> Result:
            return shard.read("a") if amount is None else shard.add("a", amount)

        world.runtime.submit(0, operation, Telling(name))

    submit("one", 1)
    submit("read", None)
    world.turn()
    submit("two", 1)
    submit("refused", -1)
    world.turn()
    assert told == []
    world.follower_has(1)
    assert told == ["one", "read"]
    submit("late read", None)
    world.follower_has(2)

    assert told == ["one", "read", "two", "refused", "late read"]


def test_an_error_of_an_operation_is_told_at_once_when_nothing_is_open() -> None:
    assert opened().add("a", -1).error_code == ErrorCode.INVALID_REQUEST


def test_a_bug_in_an_operation_is_logged_and_hurts_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    world = opened()
    broken = world.submit(lambda shard, _now_ms: shard.fail())
    fine = world.add("a", 1)
    world.turn()

    assert broken.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert fine.response == 1
    assert "ZeroDivisionError" in caplog.text


def test_a_waiter_that_fails_keeps_no_other_from_its_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(RecordingWaiter):
        def answer(self, response: object) -> None:
            raise ZeroDivisionError

    world = opened()
    world.runtime.submit(0, lambda shard, _now_ms: shard.add("a", 1), Failing())
    fine = world.add("a", 1)
    world.turn()

    assert fine.response == 2
    assert "cannot be answered" in caplog.text


def test_batches_are_compressed_as_the_brokers_key_says() -> None:
    world = World(settings={"offsets.topic.compression.codec": "2"})
    world.open()
    world.add("a" * 100, 1, times=10)
    world.turn()

    assert [header.compression_id for header in batches(world)] == [2]
    assert len(world.records()) == 10


# ------------------------------------------------------------------------------------------------- parking and refusal


def test_a_parked_request_is_answered_by_a_later_one() -> None:
    world = opened()
    parked = world.wait("a", 3)
    world.add("a", 1)
    world.turn()
    assert not parked.is_done
    world.add("a", 2)
    assert not parked.is_done
    world.turn()

    assert parked.response == 3


def test_too_few_in_sync_replicas_refuse_writes_but_no_reads() -> None:
    world = opened()
    parked = world.wait("a", 1)
    world.open(isr=(1,), replicas=(1, 2), min_insync_replicas=2, partition_epoch=1)
    world.replica().settings = type(world.replica().settings)(RULES, 2)
    world.lifecycle.apply_leadership(world.replica(), world.replica().state)  # type: ignore[arg-type] # it has one

    assert world.add("a", 1).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert parked.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE  # its answer came with the refused records
    assert world.read("a").response == 0


def test_a_write_that_is_not_committed_in_time_is_told_so_and_stands() -> None:
    world = followed()
    waiter = world.add("a", 1)
    world.turn()
    world.advance(5_000)
    assert waiter.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    read = world.read("a")
    assert not read.is_done
    world.follower_has(1)

    assert read.response == 1


# ---------------------------------------------------------------------------------------------------- life and failures


def test_nobody_coordinates_what_is_not_led_here() -> None:
    world = World()
    assert world.add("a", 1).error_code == ErrorCode.NOT_COORDINATOR
    world.open(leader=2, replicas=(1, 2), isr=(1, 2))

    assert world.add("a", 1).error_code == ErrorCode.NOT_COORDINATOR
    assert world.runtime.coordinator_epoch(0) == -1


def test_an_empty_partition_is_coordinated_at_once() -> None:
    world = opened(partitions=3, epoch=4)

    assert sorted(partition for partition, _shard in world.runtime.shards()) == [0, 1, 2]
    assert world.runtime.coordinator_epoch(2) == 4
    assert world.shard().loaded_at_ms == world.clock.now_ms()
    assert world.runtime.states() == {"loading": 0, "active": 3, "failed": 0}


def test_who_waits_is_told_when_another_broker_leads() -> None:
    world = opened(isr=(1, 2), replicas=(1, 2))
    world.follower_has(0)
    parked, written = world.wait("b", 1), world.add("a", 1)
    world.turn()
    gathered = world.add("a", 1)
    shard = world.shard()
    world.open(leader=2, epoch=1, isr=(1, 2), replicas=(1, 2), partition_epoch=1)

    assert {waiter.error_code for waiter in (parked, written, gathered)} == {ErrorCode.NOT_COORDINATOR}
    assert shard.is_unloaded


def test_a_new_epoch_of_the_same_leader_changes_nothing_else() -> None:
    world = opened()
    parked, shard = world.wait("a", 1), world.shard()
    world.open(epoch=3, partition_epoch=1)

    assert world.shard() is shard
    assert world.runtime.coordinator_epoch(0) == 3
    assert not parked.is_done


def test_a_deleted_topic_is_coordinated_no_more() -> None:
    world = opened()
    parked = world.wait("a", 1)
    run_at_once(world.lifecycle.delete_topic_in_steps(TOPIC, 1))

    assert parked.error_code == ErrorCode.NOT_COORDINATOR
    assert world.add("a", 1).error_code == ErrorCode.NOT_COORDINATOR


def test_a_failed_append_unloads_the_shard_and_loads_it_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    world = opened()
    world.add("a", 1)
    world.turn()
    old = world.shard()

    def refuse(*_arguments: object, **_options: object) -> None:
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    parked, waiter = world.wait("a", 9), world.add("a", 1)
    with monkeypatch.context() as patched:
        patched.setattr(hosted_shard, "append_as_leader", refuse)
        world.turn()
    assert (parked.error_code, waiter.error_code) == (ErrorCode.NOT_COORDINATOR,) * 2
    assert world.add("a", 1).error_code == ErrorCode.NOT_COORDINATOR
    world.advance(100)
    assert world.add("a", 1).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.load()

    assert world.shard() is not old
    assert world.shard().counters == {"a": 1}
    assert old.is_unloaded


def test_a_disk_that_fails_takes_the_coordinator_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = opened()
    waiter = world.add("a", 1)

    def fail(*_arguments: object) -> None:
        raise StorageError("no space")

    patch_one(monkeypatch, world.replica().log, "write_pending", fail)
    world.turn()

    assert waiter.error_code == ErrorCode.NOT_COORDINATOR
    assert world.add("a", 1).error_code == ErrorCode.NOT_COORDINATOR


def test_a_replay_that_fails_unloads_the_shard(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = opened()
    parked = world.wait("a", 2)
    waiter = world.add("a", 1)
    with monkeypatch.context() as patched:
        patched.setattr(CounterShard, "replay", lambda *_arguments: 1 / 0)
        broken = world.add("a", 1)

    assert broken.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert waiter.error_code == ErrorCode.NOT_COORDINATOR
    assert parked.is_done
    assert "ZeroDivisionError" in caplog.text


def test_a_shard_that_cannot_begin_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with monkeypatch.context() as patched:
        patched.setattr(CounterShard, "loaded", lambda *_arguments: 1 / 0)
        world.open()
        world.advance(50)
    assert world.runtime.states() == {"loading": 0, "active": 0, "failed": 1}
    world.advance(100)
    world.add("a", 1)
    world.turn()

    assert world.runtime.states() == {"loading": 0, "active": 1, "failed": 0}


def test_a_broker_that_stops_releases_who_waits_for_others_and_finishes_what_is_written() -> None:
    world = followed()
    parked, written = world.wait("a", 1), world.add("b", 1)
    world.runtimes.release_parked()
    assert parked.error_code == ErrorCode.NOT_COORDINATOR
    answering = world.add("a", 1)
    world.turn()
    world.follower_has(2)
    assert (written.response, answering.response) == (1, 1)
    shard = world.shard()
    world.runtimes.close()

    assert shard.is_unloaded


# ----------------------------------------------------------------------------------------------------------- all shards


def test_all_active_shards_are_asked_and_their_answers_joined() -> None:
    world = opened(partitions=3)
    world.add("a", 5, partition=1)
    waiter = RecordingWaiter()
    world.runtime.submit_all(lambda shard, _now_ms: shard.read("a"), waiter)
    assert not waiter.is_done
    world.turn()

    assert waiter.response == [0, 5, 0]


def test_asking_all_shards_of_none_gives_nothing() -> None:
    waiter = RecordingWaiter()
    World().runtime.submit_all(lambda shard, _now_ms: shard.read("a"), waiter)

    assert waiter.response == []


def test_a_shard_that_stops_is_left_out_and_any_other_error_counts() -> None:
    world = opened(partitions=2, isr=(1, 2), replicas=(1, 2))
    waiter, failing = RecordingWaiter(), RecordingWaiter()
    for partition in range(2):
        world.follower_has(0, partition)
        world.add("a", 1, partition)
    world.turn()
    world.runtime.submit_all(lambda shard, _now_ms: shard.read("a"), waiter)
    world.runtime.submit_all(lambda shard, _now_ms: shard.add("a", -1), failing)
    world.replicas.fail(world.replica(0), StorageError("gone"))
    world.follower_has(1, 1)

    assert waiter.response == [1]
    assert failing.error_code == ErrorCode.INVALID_REQUEST


def test_a_task_may_wait_for_an_operation() -> None:
    world = opened()
    told: list[object] = []

    async def ask(amount: int) -> None:
        try:
            told.append(await world.runtime.call(0, lambda shard, _now_ms: shard.add("a", amount)))
        except KafkaError as error:
            told.append(error.code)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, 4)
            await trio.testing.wait_all_tasks_blocked()
            world.turn()
        await ask(-1)

    trio.run(main)

    assert told == [4, ErrorCode.INVALID_REQUEST]


# --------------------------------------------------------------------------------------------------------------- timers


def test_a_timers_operation_runs_like_any_other() -> None:
    world = opened()
    world.submit(lambda shard, _now_ms: shard.add_later("a", 2, 50))
    parked = world.wait("a", 2)
    world.advance(49)
    assert world.shard().counters == {}
    world.advance(1)

    assert parked.response == 2
    assert len(world.records()) == 1


def test_a_timer_that_fails_is_logged_and_runs_again(caplog: pytest.LogCaptureFixture) -> None:
    world = opened()
    tries: list[int] = []

    def operation(_now_ms: int) -> Result:
        tries.append(world.clock.monotonic_ms())
        if len(tries) == 1:
            raise ZeroDivisionError
        if len(tries) == 2:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return world.shard().add("a", 1, times=500 if len(tries) == 3 else 1)

    world.shard().timers.schedule(("it",), 10, operation)
    world.advance(10_000)

    assert [later - tries[0] for later in tries] == [0, 500, 1000, 1500]
    assert world.shard().counters == {"a": 1}
    assert "ZeroDivisionError" in caplog.text


def test_timers_that_may_not_write_say_so_once_and_try_ever_more_slowly(caplog: pytest.LogCaptureFixture) -> None:
    world = opened(isr=(1,), replicas=(1, 2), min_insync_replicas=2)
    tries: list[int] = []

    def operation(_now_ms: int) -> Result:
        tries.append(world.clock.monotonic_ms())
        return world.shard().add("a", 1)

    begun_ms = world.clock.monotonic_ms()
    for number in range(100):
        world.shard().timers.schedule((f"{number}",), 10, operation)
    world.advance(20_010)
    lines = [record for record in caplog.records if "too few replicas" in record.getMessage()]
    moments = sorted({each - begun_ms - 10 for each in tries})

    assert len(lines) == 1
    assert moments == [0, 500, 1_000, 2_000, 4_000, 8_000, 13_000, 18_000]

    world.open(isr=(1, 2), replicas=(1, 2), min_insync_replicas=2, partition_epoch=1)
    world.follower_has(0)
    world.advance(5_000)
    world.follower_has(world.replica().log.log_end_offset)
    assert world.shard().counters == {"a": 100}

    world.open(isr=(1,), replicas=(1, 2), min_insync_replicas=2, partition_epoch=2)
    world.shard().timers.schedule(("it",), 10, operation)
    world.advance(10)
    lines = [record for record in caplog.records if "too few replicas" in record.getMessage()]
    assert len(lines) == 2


def test_timers_of_one_moment_may_disarm_each_other() -> None:
    world = opened()
    fired: list[str] = []

    def operation(name: str, other: str) -> None:
        def run(_now_ms: int) -> Result:
            fired.append(name)
            world.shard().timers.cancel((other,))
            return world.shard().read("a")

        world.shard().timers.schedule((name,), 10, run)

    operation("one", "two")
    operation("two", "one")
    world.advance(20)

    assert fired == ["one"]
    assert not world.shard().timers.is_scheduled(("two",))


def test_timers_end_with_their_shard() -> None:
    world = opened(isr=(1, 2), replicas=(1, 2))
    world.follower_has(0)
    world.submit(lambda shard, _now_ms: shard.add_later("a", 2, 50))
    shard = world.shard()
    world.open(leader=2, epoch=1, isr=(1, 2), replicas=(1, 2), partition_epoch=1)
    shard.timers.schedule(("late",), 1, lambda _now_ms: shard.add("a", 1))
    world.advance(100)

    assert shard.counters == {}


# --------------------------------------------------------------------------------------------------------- transactions


def test_records_of_a_transaction_have_a_batch_of_their_own() -> None:
    world = opened()
    world.add("a", 1)
    waiter = world.add("a", 10, producer=ONE, times=2)
    world.add("a", 1)
    world.turn()

    assert waiter.response == 21
    assert [
        (h.records_count, h.is_transactional, h.producer_id, h.producer_epoch, h.base_sequence) for h in batches(world)
    ] == [(1, False, -1, -1, 0), (2, True, 7, 3, 0), (1, False, -1, -1, 0)]
    assert world.shard().offsets == [0, 1, 2, 3]
    assert world.shard().counters == {"a": 2}
    assert world.replica().last_stable_offset == 1


def test_a_marker_is_replayed_at_its_place_and_answered_when_committed() -> None:
    world = followed()
    world.add("a", 10, producer=ONE)
    world.add("b", 1)
    codes = world.end_transaction(7, 4, is_commit=True)
    assert world.shard().counters == {"a": 10, "b": 1}
    world.turn()
    assert codes == []
    world.follower_has(3)

    assert codes == [ErrorCode.NONE]
    assert [header.is_control for header in batches(world)] == [False, False, True]
    assert world.replica().last_stable_offset == 3


def test_an_aborted_transaction_counts_for_nothing() -> None:
    world = opened()
    world.add("a", 10, producer=ONE)
    codes = world.end_transaction(7, 3, is_commit=False)
    world.turn()

    assert codes == [ErrorCode.NONE]
    assert world.shard().counters == {}


def test_a_fenced_producer_is_told_so_and_nothing_is_replayed() -> None:
    world = opened()
    world.add("a", 1, producer=ONE)
    old = world.add("a", 1, producer=ProducerIdentity(7, 2))
    codes = world.end_transaction(7, 1, is_commit=True)
    world.turn()

    assert old.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert codes == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert world.shard().pending == {7: [Added("a", 1)]}


def test_what_was_verified_before_the_transaction_ended_is_not_written_behind_its_end() -> None:
    """With transaction versions 0 and 1 the marker has the epoch of what it ends: the epoch alone would let it pass."""
    world = opened()
    begun = world.runtime.begin_verification(0, ONE, may_add=False)
    codes = world.end_transaction(ONE.producer_id, ONE.producer_epoch, is_commit=False)
    world.turn()
    late = world.add("a", 1, producer=ONE, verified=begun)

    assert codes == [ErrorCode.NONE]
    assert late.error_code == ErrorCode.INVALID_TXN_STATE
    assert world.shard().pending == {}
    assert world.replica().last_stable_offset == world.replica().high_watermark

    begun = world.runtime.begin_verification(0, ONE, may_add=False)
    assert world.add("a", 1, producer=ONE, verified=begun).error is None
    open_here = world.runtime.begin_verification(0, ONE, may_add=False)
    assert open_here is None
    assert world.add("a", 1, producer=ONE, verified=open_here).error is None
    world.end_transaction(ONE.producer_id, ONE.producer_epoch, is_commit=True)
    late = world.add("a", 1, producer=ONE, verified=open_here)
    world.turn()

    assert late.error_code == ErrorCode.INVALID_TXN_STATE


def test_a_fenced_producer_and_one_of_another_coordinator_begin_no_verification() -> None:
    world = opened()
    world.add("a", 1, producer=ONE)
    for partition, producer, code in (
        (0, ProducerIdentity(ONE.producer_id, ONE.producer_epoch - 1), ErrorCode.INVALID_PRODUCER_EPOCH),
        (1, ONE, ErrorCode.NOT_COORDINATOR),
    ):
        with pytest.raises(KafkaError) as refused:
            world.runtime.begin_verification(partition, producer, may_add=False)

        assert refused.value.code is code


def test_a_marker_for_a_partition_that_is_not_coordinated_here_is_for_another_leader() -> None:
    world = opened(leader=2, replicas=(1, 2), isr=(1, 2))

    assert world.end_transaction(7, 1, is_commit=True) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_marker_that_is_not_committed_in_time_is_told_so() -> None:
    world = followed()
    codes = world.end_transaction(7, 1, is_commit=True)
    world.turn()
    world.advance(5_000)

    assert codes == [ErrorCode.REQUEST_TIMED_OUT]


# ---------------------------------------------------------------------------------------------------- the whole broker


class Other(CounterCoordinator):
    topic = "__other"


def test_two_plugins_may_not_coordinate_the_same() -> None:
    with pytest.raises(PluginError, match=r"plugin1.*the topic __counters.*'plugin0'"):
        World(coordinators=[CounterCoordinator(), CounterCoordinator()])
    with pytest.raises(PluginError, match=r"plugin1.*the key type 9.*'plugin0'"):
        World(coordinators=[CounterCoordinator(), Other()])


def test_metrics_tell_the_states() -> None:
    world = opened(partitions=2)
    world.wait("a", 1)
    values = {metric.name: metric.read() for _plugin, metric in world.runtimes.metrics()}

    assert values["kafka_server_counters_coordinator_metrics_num_partitions"] == {
        ("active",): 2,
        ("failed",): 0,
        ("loading",): 0,
    }
    assert values["odradek_coordinator_parked_requests"] == {("counters",): 1}
    assert values["odradek_coordinator_waiting_requests"] == {("counters",): 0}
    assert all(("counters",) in read for name, read in values.items() if name.startswith("odradek"))
