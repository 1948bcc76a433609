"""A follower's log: what a leader numbered is appended as it came, and what diverges is given up with all it left."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.contracts.disk_work import do_now
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.log_values import RecordsData
from odradek.kernel.contracts.tiering import TierSettings
from odradek.kernel.errors import ErrorCode, KafkaError, StorageError
from odradek.kernel.machine.turnstile import SLICE_STEPS, run_at_once
from odradek.kernel.partitions.following import (
    append_as_follower,
    begin_anew,
    begin_at_store,
    diverging_offset,
    note_leader,
    rebuild_after_cut,
    truncate,
)
from odradek.kernel.partitions.producer_snapshot import SNAPSHOT_KIND, decode_snapshot, encode_snapshot
from odradek.kernel.partitions.producer_table import ProducerStateTable
from odradek.kernel.partitions.recovery import keep_producers
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.partitions.transaction_index import TRANSACTION_INDEX_KIND
from odradek.kernel.records.batch import CorruptRecordsError, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from odradek.testing.far_tier import FarTier
from tests.one_object import patch_one
from tests.waiting import until_async

from .hosted import Hosted

NOW_MS = 1_000
TIERED = TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=CleanupSettings())


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    hosted = Hosted(tmp_path)
    hosted.open("t", leader=2, epoch=9)
    yield hosted
    hosted.lifecycle.close()


@pytest.fixture
def replica(hosted: Hosted) -> Replica:
    return hosted.replicas.get("t", 0)


def batch(base_offset: int, *values: bytes, epoch: int = 1, producer_id: int = -1, sequence: int = -1) -> bytes:
    """A batch as a leader of this epoch numbered it; with a producer it is one of its transaction."""
    builder = BatchBuilder(
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
        is_transactional=producer_id >= 0,
    )
    for value in values or (b"v",):
        builder.append(None, value, timestamp=100 + base_offset)
    return bytes(builder.build())


def abort(base_offset: int, *, epoch: int = 1, producer_id: int = 7) -> bytes:
    """The marker that aborts a producer's transaction."""
    return bytes(
        build_control_batch(
            [EndTransactionMarker(ControlRecordType.ABORT, 3)],
            producer_id=producer_id,
            producer_epoch=0,
            timestamp=100 + base_offset,
            base_offset=base_offset,
            partition_leader_epoch=epoch,
        )
    )


def take(replica: Replica, *batches: bytes) -> int:
    """Append what a fetch brought, and write it."""
    size_bytes = append_as_follower(replica, b"".join(batches))
    replica.write()
    return size_bytes


def cut(hosted: Hosted, replica: Replica, offset: int) -> bool:
    """Truncate, and have the replica served again."""
    is_changed = truncate(replica, offset)
    trio.run(rebuild_after_cut, hosted.lifecycle, replica, NOW_MS)
    assert replica.offline_reason is None
    return is_changed


def test_a_follower_that_begins_at_the_store_knows_its_producers_and_what_is_committed(
    tmp_path: Path,
) -> None:
    tier = FarTier()
    hosted = Hosted(tmp_path, tier=tier)
    hosted.open("t", leader=2, epoch=9, tier=TIERED)
    replica = hosted.replicas.get("t", 0)
    take(replica, batch(0, b"a", producer_id=5, sequence=0))
    snapshot = ProducerStateTable(60_000)
    snapshot.append(read_header(batch(19, b"b", producer_id=7, sequence=4)))
    tier.logs[replica.partition].stored_sidecars = {SNAPSHOT_KIND: encode_snapshot(snapshot.snapshot())}

    begin(hosted, replica, 20)

    assert replica.offline_reason is None
    assert (replica.log.log_end_offset, replica.appended_offset, replica.high_watermark) == (20, 20, 20)
    assert [producer.producer_id for producer in decode_snapshot(encode_snapshot(replica.producers.snapshot()))] == [7]
    take(replica, batch(20, b"c", producer_id=7, sequence=5))
    assert replica.log.log_end_offset == 21
    hosted.lifecycle.close()


def test_a_leader_does_not_begin_at_the_store(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path, tier=FarTier())
    hosted.open("t", tier=TIERED)
    replica = hosted.replicas.get("t", 0)

    with pytest.raises(KafkaError):
        begin(hosted, replica, 20)

    assert replica.log.log_end_offset == 0
    hosted.lifecycle.close()


def begin(hosted: Hosted, replica: Replica, offset: int) -> None:
    """Have a replica begin where the store's part ends, and be served again."""
    assert replica.tiered_log is not None
    start = replica.tiered_log.begin_at_store(offset, is_exact=False)
    for work in start.begin_keeping():
        do_now(work)
    begin_at_store(replica, start)
    trio.run(rebuild_after_cut, hosted.lifecycle, replica, NOW_MS)


def test_batches_are_appended_as_the_leader_numbered_them(replica: Replica) -> None:
    first, second = batch(0, b"a", b"b"), batch(5, b"c", epoch=4)  # compaction left a gap

    assert take(replica, first, second, batch(6)[:-1]) == len(first) + len(second)

    assert [bytes(each) for each in replica.log.batches(0)] == [first, second]
    assert (replica.appended_offset, replica.high_watermark, list(replica.log.epoch_entries())) == (
        6,
        0,
        [(1, 0), (4, 5)],
    )


def test_what_is_committed_is_the_leaders_word_as_far_as_the_log_goes(replica: Replica) -> None:
    take(replica, batch(0, b"a", b"b", b"c"))

    note_leader(replica, 2, 1)
    before = (replica.high_watermark, replica.log.log_start_offset)
    note_leader(replica, 9, 7)

    assert (before, replica.high_watermark, replica.log.log_start_offset) == ((2, 1), 3, 3)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(batch(2)[:-1] + b"\xff", id="crc"),
        pytest.param(batch(0), id="again"),
        pytest.param(batch(2)[:16] + b"\x01" + batch(2)[17:], id="magic"),
    ],
)
def test_of_a_fetch_with_a_batch_that_is_not_sound_nothing_is_taken(replica: Replica, bad: bytes) -> None:
    with pytest.raises(CorruptRecordsError):
        append_as_follower(replica, batch(0, b"a", b"b") + bad)

    assert (replica.log.log_end_offset, replica.offline_reason) == (0, None)


def test_an_epoch_that_the_metadata_does_not_have_yet_waits(replica: Replica) -> None:
    take(replica, batch(0), batch(1, epoch=10))

    assert replica.log.log_end_offset == 1


def test_who_leads_takes_nothing_from_others(hosted: Hosted) -> None:
    hosted.open("led")

    with pytest.raises(KafkaError) as raised:
        append_as_follower(hosted.replicas.get("led", 0), batch(0))
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_truncation_takes_everything_along_that_was_derived(hosted: Hosted, replica: Replica) -> None:
    take(replica, batch(0, producer_id=7, sequence=0), abort(1), batch(2, epoch=2))
    keep_producers(replica.log, replica.producers, None)
    take(replica, batch(3, producer_id=7, sequence=1, epoch=3), abort(4, epoch=3), batch(5, producer_id=8, sequence=0))
    keep_producers(replica.log, replica.producers, None)
    note_leader(replica, 6, 0)

    assert cut(hosted, replica, 3)

    log = replica.log
    assert (log.log_end_offset, replica.appended_offset, replica.high_watermark) == (3, 3, 3)
    assert list(log.epoch_entries()) == [(1, 0), (2, 2)]
    assert list(log.sidecars(SNAPSHOT_KIND)) == [3]
    assert [(each.producer_id, each.last_offset) for each in replica.producers.transactions.aborted()] == [(7, 1)]
    assert len(log.read_sidecar(0, TRANSACTION_INDEX_KIND)) == 34
    assert log.max_timestamp() == (102, 2)
    assert [state.producer_id for state in replica.producers.states()] == [7]
    assert replica.last_stable_offset == 3


def test_a_truncation_into_a_transaction_leaves_it_open(hosted: Hosted, replica: Replica) -> None:
    take(replica, batch(0, producer_id=7, sequence=0), batch(1, producer_id=7, sequence=1), abort(2))

    cut(hosted, replica, 1)
    take(replica, batch(1, epoch=2), batch(2, epoch=2))
    note_leader(replica, 3, 0)

    assert (replica.high_watermark, replica.last_stable_offset) == (3, 0)
    assert replica.log.sidecars(TRANSACTION_INDEX_KIND) == []


BATCHES_COUNT = 5 * SLICE_STEPS


@pytest.fixture
def cut_replica(replica: Replica) -> Replica:
    """One whose last batch of many was cut off, and whose producers are to be read again."""
    take(replica, *(batch(number, producer_id=number, sequence=0) for number in range(BATCHES_COUNT)))
    truncate(replica, BATCHES_COUNT - 1)
    return replica


def rebuild(hosted: Hosted, replica: Replica, *in_between: Callable[[], object]) -> int:
    """Have the replica served again; do each of these after a turn. Returns how many turns there were."""

    async def main() -> int:
        turns_count, left = 0, list(in_between)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rebuild_after_cut, hosted.lifecycle, replica, NOW_MS)
            await trio.lowlevel.checkpoint()  # after two it has certainly begun
            while nursery.child_tasks:
                await trio.lowlevel.checkpoint()
                turns_count += 1
                if left:
                    left.pop(0)()
        return turns_count

    return trio.run(main)


def test_producers_are_read_again_with_everybody_else_in_between(hosted: Hosted, cut_replica: Replica) -> None:
    turns_count = rebuild(hosted, cut_replica)

    assert turns_count > BATCHES_COUNT // SLICE_STEPS
    assert [state.producer_id for state in cut_replica.producers.states()] == list(range(BATCHES_COUNT - 1))
    assert (cut_replica.offline_reason, cut_replica.is_leader, cut_replica.is_paused) == (None, False, False)


def test_who_is_to_lead_leads_when_its_producers_are_known(hosted: Hosted, cut_replica: Replica) -> None:
    seen: list[tuple[bool, int]] = []

    def lead() -> None:
        hosted.open("t", leader=1, epoch=10)
        seen.append((cut_replica.is_leader, cut_replica.leader_epoch))

    rebuild(hosted, cut_replica, lead)

    assert seen == [(False, 9)]
    assert (cut_replica.is_leader, cut_replica.leader_epoch, len(cut_replica.producers)) == (
        True,
        10,
        BATCHES_COUNT - 1,
    )


def test_until_its_producers_are_known_nobody_reads_nor_keeps_them(hosted: Hosted, cut_replica: Replica) -> None:
    codes: list[ErrorCode] = []

    def read() -> None:
        with pytest.raises(KafkaError) as raised:
            cut_replica.check_epoch(-1)
        codes.append(raised.value.code)

    rebuild(hosted, cut_replica, read)

    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_a_topic_that_is_deleted_meanwhile_stays_so(hosted: Hosted, cut_replica: Replica) -> None:
    rebuild(hosted, cut_replica, lambda: run_at_once(hosted.lifecycle.delete_topic_in_steps("t", 1)))

    assert cut_replica.offline_reason == "the topic was deleted"


def test_a_log_that_fails_meanwhile_stays_offline_and_is_read_no_further(hosted: Hosted, cut_replica: Replica) -> None:
    rebuild(hosted, cut_replica, lambda: hosted.replicas.fail(cut_replica, StorageError("its disk")))

    assert (cut_replica.offline_reason, cut_replica.is_paused) == ("its disk", False)
    assert 0 < len(cut_replica.producers) < BATCHES_COUNT - 1


def test_a_log_that_cannot_be_read_again_is_offline_and_says_why(
    hosted: Hosted, cut_replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Iterator[memoryview]:
        raise StorageError("its disk")

    patch_one(monkeypatch, cut_replica.log, "batches", fail)
    rebuild(hosted, cut_replica)

    assert (cut_replica.offline_reason, cut_replica.is_paused) == ("its disk", False)


def test_the_end_of_a_broker_waits_until_producers_are_known(hosted: Hosted, cut_replica: Replica) -> None:
    async def main() -> None:
        with trio.move_on_after(0):
            await rebuild_after_cut(hosted.lifecycle, cut_replica, NOW_MS)

    trio.run(main)
    hosted.restart()
    hosted.open("t", leader=2, epoch=9)

    assert len(hosted.replicas.get("t", 0).producers) == BATCHES_COUNT - 1


def test_a_move_to_another_log_directory_waits_until_producers_are_known(hosted: Hosted, replica: Replica) -> None:
    take(replica, *(batch(number, producer_id=number, sequence=0) for number in range(BATCHES_COUNT)))
    (target,) = [path for path in hosted.dirs if path != replica.log.log_dir]
    moves = hosted.moves()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(moves.run)
            moves.ask(replica, target)
            truncate(replica, BATCHES_COUNT - 1)
            nursery.start_soon(rebuild_after_cut, hosted.lifecycle, replica, NOW_MS)
            await until_async(lambda: replica.future is None)
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert (replica.log.log_dir, replica.log.log_end_offset) == (target, BATCHES_COUNT - 1)
    assert (replica.offline_reason, len(replica.producers)) == (None, BATCHES_COUNT - 1)


def test_producers_are_read_again_without_a_look_at_all_segments_times(
    hosted: Hosted, cut_replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_one(monkeypatch, cut_replica.log, "segments", lambda: pytest.fail("all headers of the log were read"))
    rebuild(hosted, cut_replica)

    assert (cut_replica.offline_reason, len(cut_replica.producers)) == (None, BATCHES_COUNT - 1)


def test_a_log_without_producers_is_not_read_again(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    take(replica, batch(0), batch(1), batch(2))
    patch_one(monkeypatch, replica.log, "batches", lambda *_: pytest.fail("it was read"))

    assert (truncate(replica, 2), replica.offline_reason, replica.log.log_end_offset) == (True, None, 2)


def test_an_epoch_without_records_goes_though_the_log_stays(replica: Replica) -> None:
    take(replica, batch(0))
    replica.log.assign_epoch(5, 1)  # led, and wrote nothing

    changed = truncate(replica, 1)

    assert (changed, truncate(replica, 1), replica.log.latest_epoch) == (True, False, 1)


def test_the_log_begins_anew_where_the_leaders_does(replica: Replica) -> None:
    take(replica, batch(0, producer_id=7, sequence=0))

    begin_anew(replica, 40, NOW_MS)
    take(replica, batch(40, epoch=3))
    log = replica.log

    assert (log.log_start_offset, log.log_end_offset, replica.appended_offset, replica.high_watermark) == (
        40,
        41,
        41,
        40,
    )
    assert (list(log.epoch_entries()), len(replica.producers), replica.last_stable_offset) == ([(3, 40)], 0, 40)


def test_where_logs_diverge_is_found_by_epochs(replica: Replica) -> None:
    take(replica, batch(0, b"a", b"b", epoch=1), batch(2, b"c", b"d", epoch=3), batch(4, b"e", epoch=6))
    log = replica.log
    asked = {
        "the leader's epoch ended earlier": diverging_offset(log, 3, 3),
        "the leader's epoch ended later": diverging_offset(log, 3, 9),
        "an epoch that only the leader had": diverging_offset(log, 5, 4),
        "nothing in common": diverging_offset(log, 0, 0),
    }

    assert list(asked.values()) == [3, 4, 4, 0]


def test_two_logs_agree_after_any_history_of_leaders(tmp_path: Path) -> None:
    """KIP-101's promise, on real files: a follower that truncates by epochs ends with the leader's log."""
    for seed in range(12):
        _check_history(tmp_path / str(seed), random.Random(seed))


def _check_history(directory: Path, source: random.Random) -> None:
    hosts = {broker_id: Hosted(directory / str(broker_id)) for broker_id in (1, 2)}
    logs = {}
    for broker_id, host in hosts.items():
        host.open("t", leader=3, epoch=0)
        logs[broker_id] = host.replicas.get("t", 0)
    for epoch in range(1, 12):
        leader, follower = source.sample((1, 2), 2)
        for replica in logs.values():  # both take the metadata; nobody leads for the test: batches are written by hand
            state = PartitionState(3, epoch, epoch, replicas=(1, 3), isr=(1, 3))
            replica.become(state)
        logs[leader].log.assign_epoch(epoch, logs[leader].log.log_end_offset)
        for _ in range(source.randrange(3)):
            take(logs[leader], batch(logs[leader].log.log_end_offset, b"%d" % epoch, b"x", epoch=epoch))
        if source.random() < 0.6:
            _follow(logs[leader], logs[follower], source.randrange(1, 200))
            assert [*map(bytes, logs[follower].log.batches(0))] == [*map(bytes, logs[leader].log.batches(0))][
                : len([*logs[follower].log.batches(0)])
            ]
    for host in hosts.values():
        host.lifecycle.close()


def bytes_of(data: RecordsData) -> bytes:
    return bytes(data) if isinstance(data, (bytes, memoryview)) else data.read()


def _follow(leader: Replica, follower: Replica, max_bytes: int) -> None:
    for _ in range(30):
        mine = follower.log
        epoch = mine.latest_epoch
        end = leader.log.end_offset_for_epoch(epoch)
        if epoch >= 0 and (end.leader_epoch < epoch or end.end_offset < mine.log_end_offset):
            assert truncate(follower, diverging_offset(mine, end.leader_epoch, end.end_offset))
            continue
        if mine.log_end_offset >= leader.log.log_end_offset:
            return
        read = leader.log.read(mine.log_end_offset, max_bytes, at_least_one=True)
        take(follower, bytes_of(read.data))
    raise AssertionError(f"{follower} does not catch up with {leader}")


def test_the_header_of_what_was_taken_is_the_leaders(replica: Replica) -> None:
    take(replica, batch(0, epoch=7))

    assert read_header(next(replica.log.batches(0))).partition_leader_epoch == 7
