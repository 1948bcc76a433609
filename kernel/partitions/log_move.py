"""Shell: moves a replica's log to another log directory while it serves.

    copy, flush      on a thread, the replica serves; DescribeLogDirs shows the copy as a future replica; once more
                     until little is left, also of a log that was truncated meanwhile: nothing compacts it from now on
    pause            clients get KAFKA_STORAGE_ERROR, which they retry; the log is closed
    swap             on a thread: what came since is copied, the copy takes the log's place
    resume           with the log where it then is: there, or here if the move failed or was cancelled

Nobody is kept from deleting the topic: then nothing is resumed, and the engine gives the copy up.

*Source:* KIP-113.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from ..errors import ErrorCode, KafkaError, StorageError
from ..machine.turnstile import take_turn
from .following import REBUILDING
from .future_log import FutureLog

PAUSED_BYTES_MAX: Final = 16 << 20
"""How much may be left to be copied while clients wait: a tenth of a second's work of a slow disk."""

if TYPE_CHECKING:
    from ..machine.threads import Workers
    from ..machine.throttle import Throttle
    from .replica import Replica
    from .replica_lifecycle import ReplicaLifecycle
    from .replicas import Replicas
    from .staged_writes import StagedWrites


def begin_move(replicas: Replicas, replica: Replica, log_dir: str, throttle: Throttle) -> None:
    """Begin to move a replica's log, as fast as it may be; `move_replica` is to follow, or `give_up`.

    Raises:
        KafkaError: The replica is offline, or moving already.
        StorageError: There is no such directory, or a disk failed.
    """
    check_serving(replica)
    if replica.future is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the replica is moving already")
    engine = replicas.engines[replicas.topics[replica.partition.topic].plan.storage]
    replica.future = FutureLog(log_dir, engine.begin_move(replica.partition, log_dir), throttle)


def give_up(replica: Replica) -> None:
    """Give up a move that was begun and is not being carried out."""
    future, replica.future = replica.future, None
    if future is not None:
        future.move.give_up()


async def move_replica(
    replicas: Replicas,
    lifecycle: ReplicaLifecycle,
    writes: StagedWrites,
    replica: Replica,
    worker: Workers,
) -> None:
    """Carry out a move that was begun. Stopped: the replica goes on where it was, after one more chunk.

    It goes on as long as more is written than may be copied at a time, as in Kafka: clients do not wait for that.
    Cancelled, which is the broker's end: likewise, but the move is not given up: the next start goes on with it.

    Args:
        replicas: This broker's.
        lifecycle: Theirs.
        writes: Theirs.
        replica: Whose log moves.
        worker: The thread that copies, flushes and swaps.

    Raises:
        KafkaError: The replica is offline.
        StorageError: The move was stopped, or a disk failed; the replica goes on where it was, unless that failed too.
    """
    assert replica.future is not None
    future, move, log_dir = replica.future, replica.future.move, replica.future.log_dir
    try:
        future.is_under_way = True
        await _until_rebuilt(replica)
        check_serving(replica)
        topic = replicas.topics[replica.partition.topic]
        is_flushed = False
        while move.begin_copy() > PAUSED_BYTES_MAX or not is_flushed:
            await _copy(future, worker)
            await _until_rebuilt(replica)
            await _flush(writes, replica, worker)
            await _until_rebuilt(replica)
            check_serving(replica)
            is_flushed = True
        writes.write_now((replica,))
        check_serving(replica)
        reason = f"its log moves to {log_dir}"
        replica.pause(reason)
        tier = topic.plan.tier
        try:
            await worker.do(replica.log.begin_close())
            await worker.do(move.begin_swap())
        finally:
            is_served = lifecycle.resume(topic, replica, tier, reason)
            if is_served and replica.appended_offset < replica.log.log_end_offset:
                writes.ask_for_flush(replica)  # it was not closed, and clients wait for what it has
    except Exception:
        give_up(replica)
        raise
    else:
        give_up(replica)
    finally:
        replica.future = None  # the broker ends, which is neither of the two: the move is not given up


def check_serving(replica: Replica) -> None:
    """Refuse a replica that is offline.

    Raises:
        KafkaError: It is.
    """
    if replica.offline_reason is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)


async def _until_rebuilt(replica: Replica) -> None:
    """Wait for a follower that was truncated meanwhile: it is served again soon, and nobody asks for the move again."""
    while replica.offline_reason == REBUILDING:
        await take_turn()


async def _flush(writes: StagedWrites, replica: Replica, worker: Workers) -> None:
    """Flush what may be much while the replica still serves: the pause need not wait for it."""
    check_serving(replica)
    partition_log = replica.log
    try:
        await worker.do(partition_log.begin_flush())
    except StorageError as error:
        writes.note_flushed(replica, partition_log, error)
        raise
    writes.note_flushed(replica, partition_log, None)


async def _copy(future: FutureLog, worker: Workers) -> None:
    """Run a move's first part. Cancelled: it is stopped, and waited for."""
    async with trio.open_nursery() as nursery:
        is_over = trio.Event()
        failures: list[StorageError] = []

        async def run() -> None:
            try:
                await worker.run_sync(future.copy)
            except StorageError as error:
                failures.append(error)
            is_over.set()

        nursery.start_soon(run)
        try:
            await is_over.wait()
        finally:
            if not is_over.is_set():
                future.stop()
    if failures:
        raise failures[0]
