"""What a plugin does wrong costs its own shard or request, and is told with its name."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from odradek.kernel.contracts.coordinator import MetadataChange, ProducerIdentity, TopicView
from odradek.kernel.coordinator.runtimes import CoordinatorRuntimes
from odradek.kernel.errors import ErrorCode, PluginError, StorageError

from .hosting import TOPIC_ID, World
from .toy import CounterCoordinator, CounterShard, Result

ONE = ProducerIdentity(7, 3)


def opened() -> World:
    world = World()
    world.open()
    return world


def broken(*_arguments: object, **_options: object) -> Any:
    raise ZeroDivisionError


def test_a_record_that_cannot_be_encoded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = opened()
    with monkeypatch.context() as patched:
        patched.setattr(CounterCoordinator, "encode", broken)
        waiter = world.add("a", 1)

    assert waiter.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.shard().counters == {}


def test_a_record_that_cannot_be_decoded_is_skipped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = opened()
    world.add("a", 1)
    world.turn()
    monkeypatch.setattr(CounterCoordinator, "decode", broken)
    world.reload()

    assert world.shard().counters == {}
    assert "skipped offset 0: it cannot be decoded" in caplog.text


def test_a_shard_that_cannot_be_made_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with monkeypatch.context() as patched:
        patched.setattr(CounterCoordinator, "new_shard", broken)
        world.open()
    assert world.runtime.states() == {"loading": 0, "active": 0, "failed": 1}
    assert world.end_transaction(7, 0, is_commit=True) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    world.advance(100)

    assert world.runtime.states() == {"loading": 0, "active": 1, "failed": 0}


def test_the_pause_before_another_try_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    tries: list[int] = []

    def fail(*_arguments: object) -> None:
        tries.append(world.clock.monotonic_ms())
        raise ZeroDivisionError

    monkeypatch.setattr(CounterCoordinator, "new_shard", fail)
    world.open()
    world.advance(30_000)
    pauses = [later - earlier for earlier, later in pairwise(tries)]

    assert pauses == [100, 200, 400, 800, 1600, 3200, 6400, 10_000]


def test_an_unload_that_fails_still_tells_everybody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = opened()
    parked = world.wait("a", 1)
    monkeypatch.setattr(CounterShard, "unloaded", broken)
    world.replicas.fail(world.replica(), StorageError("gone"))

    assert parked.error_code == ErrorCode.NOT_COORDINATOR
    assert "failed when it was unloaded" in caplog.text


def test_a_marker_that_cannot_be_replayed_unloads_the_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    world = opened()
    world.add("a", 1, producer=ONE)
    with monkeypatch.context() as patched:
        patched.setattr(CounterShard, "replay_marker", broken)
        codes = world.end_transaction(7, 3, is_commit=True)
    world.turn()
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    world.advance(200)
    world.load()

    assert world.shard().counters == {"a": 1}  # the marker stands in the log


def test_a_parked_request_whose_records_were_refused_is_answered_once() -> None:
    world = opened()
    answers: list[object] = []

    class Waiter:
        def answer(self, response: object) -> None:
            answers.append(response)

        def fail(self, error: Any) -> None:
            answers.append(error.code)

    waiter = Waiter()

    def park_with_records(shard: CounterShard, _now_ms: int) -> Result:
        parking, adding = shard.wait("a", 1, waiter), shard.add("b", 1, times=500)
        return Result(adding.records, parking.response)

    world.runtime.submit(0, park_with_records, waiter)
    assert answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    world.add("a", 1)
    world.turn()

    assert answers == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_request_may_answer_itself_among_the_parked() -> None:
    world = opened()
    answers: list[object] = []

    class Waiter:
        def answer(self, response: object) -> None:
            answers.append(response)

        def fail(self, error: object) -> None:
            answers.append(error)

    waiter = Waiter()

    def park_and_answer(shard: CounterShard, _now_ms: int) -> Result:
        parking = shard.wait("a", 1, waiter)
        adding = shard.add("a", 1)
        return Result(adding.records, parking.response, adding.answers)

    world.runtime.submit(0, park_and_answer, waiter)
    world.turn()
    world.replicas.fail(world.replica(), StorageError("gone"))

    assert answers == [1]


@pytest.mark.parametrize("is_marker", [False, True])
def test_a_transactional_append_to_a_lost_partition_unloads_the_shard(is_marker: bool) -> None:
    world = opened()
    parked = world.wait("a", 1)
    world.replica().is_leader = False  # as between a lost leadership and the news of it
    if is_marker:
        assert world.end_transaction(7, 3, is_commit=True) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    else:
        assert world.add("a", 1, producer=ONE).error_code == ErrorCode.NOT_COORDINATOR

    assert parked.error_code == ErrorCode.NOT_COORDINATOR


def test_a_gathered_batch_that_fails_takes_a_transactional_result_with_it() -> None:
    world = opened()
    gathered = world.add("a", 1)
    world.replica().is_leader = False
    transactional = world.add("a", 1, producer=ONE)

    assert (gathered.error_code, transactional.error_code) == (ErrorCode.NOT_COORDINATOR,) * 2


def test_a_plugin_that_cannot_hear_of_metadata_keeps_nobody_else_from_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = opened()
    parked = world.wait("a", 1)
    monkeypatch.setattr(CounterCoordinator, "metadata_changed", broken)
    gone = TopicView(CounterCoordinator.topic, TOPIC_ID, 1)
    world.runtimes.metadata_changed(MetadataChange(deleted_topics=(gone,)))

    assert parked.error_code == ErrorCode.NOT_COORDINATOR
    assert world.runtime.places == {}
    assert "plugin plugin0" in caplog.text


@pytest.mark.parametrize("method", ["handlers", "metrics", "transactions"])
def test_a_plugin_that_fails_to_give_is_named(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    world = World()
    monkeypatch.setattr(CounterCoordinator, method, broken)
    give = getattr(CoordinatorRuntimes, method)

    with pytest.raises(PluginError, match=r"plugin0.*ZeroDivisionError"):
        list(give(world.runtimes))


def test_only_one_coordinator_may_be_that_of_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(CounterCoordinator):
        topic = "__other"
        key_type = 8

    world = World(coordinators=[CounterCoordinator(), Other()])
    assert world.runtimes.transactions() is None
    monkeypatch.setattr(CounterCoordinator, "transactions", lambda _self, runtime: runtime)

    with pytest.raises(PluginError, match=r"plugin1.*coordinates transactions"):
        world.runtimes.transactions()
