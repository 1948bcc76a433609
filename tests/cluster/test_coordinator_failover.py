"""A transaction coordinator dies once an end is decided, and neither its answer nor all of its markers arrived.

    producer ── EndTxn ──> coordinator: prepared ── markers ──> some partitions, or all, or none
             <── lost ───              ── dies ──
             ── EndTxn, again ──> the next one: loads what is prepared, sends markers, completes; answers as the first

With `transaction.version` 2, where an end raises the epoch, and with 1, where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import pytest
import trio

from odradek.client.producer import Producer
from odradek.kernel.contracts.transactions import MarkerWriter, TransactionMarker
from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.peers.connection import open_connection
from odradek.kernel.records.batch import read_header
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnRequest
from odradek.lab.simulator.cluster import PORT, BrokerHost, Cluster
from odradek.plugins.transactions.metadata import TransactionMetadata
from odradek.plugins.transactions.states import TransactionState

from .simulated import CONNECTION, image_of, in_cluster, until
from .test_transactions import (
    PARTITIONS,
    SETTINGS,
    begin,
    broker_of,
    coordinator_of,
    make_topic,
    name_coordinated_by,
    read_committed,
    settings_of,
    state_of,
    transactions_of,
    write,
)
from .test_versions import SAFE_DOWNGRADE, update

COORDINATOR = 2
SOME = 3
TOO_LATE = {1: ErrorCode.TRANSACTION_COORDINATOR_FENCED, 2: ErrorCode.INVALID_PRODUCER_EPOCH}
"""What the leader of another broker says to a marker of a coordinator from before, by `transaction.version`."""
Done = Callable[[Mapping[TopicPartition, ErrorCode]], None]


@attrs.frozen
class Death:
    """When the coordinator dies.

    Attributes:
        state: Of the transactional id, as the coordinator has it.
        markers: In how many partitions the transaction has ended.
    """

    state: TransactionState
    markers: int

    @property
    def is_commit(self) -> bool:
        return self.state in {TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT}

    @property
    def is_complete(self) -> bool:
        return self.state in {TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}

    def __str__(self) -> str:
        return f"{self.state.text}-{self.markers}"


DEATHS = (
    *(Death(TransactionState.PREPARE_COMMIT, count) for count in (0, SOME, PARTITIONS)),
    *(Death(TransactionState.PREPARE_ABORT, count) for count in (0, SOME, PARTITIONS)),
    Death(TransactionState.COMPLETE_COMMIT, PARTITIONS),
    Death(TransactionState.COMPLETE_ABORT, PARTITIONS),
)


class SomeMarkers:
    """A `MarkerWriter` whose markers arrive in the first partitions; no answer does."""

    def __init__(self, writer: MarkerWriter, count: int) -> None:
        self._writer, self._count = writer, count

    def write(self, marker: TransactionMarker, done: Done) -> None:
        """Have some of it written, and tell nobody."""
        there = [each for each in marker.partitions if each.partition < self._count]
        if there:
            self._writer.write(attrs.evolve(marker, partitions=there), lambda _codes: None)


class HeldMarkers:
    """A `MarkerWriter` that keeps what it is given until it is told to let go."""

    def __init__(self, writer: MarkerWriter) -> None:
        self._writer = writer
        self.held: list[TransactionMarker] = []
        self.codes: set[ErrorCode] = set()

    def write(self, marker: TransactionMarker, done: Done) -> None:
        """Keep it."""
        self.held.append(marker)

    def let_go(self) -> None:
        """Have all of it written."""
        for marker in self.held:
            self._writer.write(marker, lambda codes: self.codes.update(codes.values()))


def markers_by(host: BrokerHost) -> MarkerWriter:
    writer = broker_of(host).parts.view.markers
    assert writer is not None
    return writer


def leading(cluster: Cluster, partition: int) -> Replica:
    living = [host for host in cluster.brokers.values() if host.broker is not None]
    leader = image_of(living[0]).topics_by_name["t"].partitions[partition].leader
    return broker_of(cluster.brokers[leader]).parts.logs.replicas.get("t", partition)


def ended_in(cluster: Cluster, producer_id: int) -> list[int]:
    """The partitions in which a producer has written, and has no transaction open; all of it committed."""
    found = []
    for partition in range(PARTITIONS):
        replica = leading(cluster, partition)
        markers = markers_of(replica, producer_id)
        if markers and replica.high_watermark > markers[-1] and not replica.producers.transactions.unstable_count:
            found.append(partition)
    return found


def markers_of(replica: Replica, producer_id: int) -> list[int]:
    headers = [read_header(batch) for batch in replica.log.batches(replica.log.log_start_offset)]
    return [each.base_offset for each in headers if each.is_control and each.producer_id == producer_id]


def aborted_of(replica: Replica, producer_id: int) -> int:
    return sum(each.producer_id == producer_id for each in replica.producers.transactions.aborted())


async def end(producer: Producer, *, commits: bool) -> None:
    await (producer.commit_transaction() if commits else producer.abort_transaction())


async def ask_to_end(
    cluster: Cluster, asked: BrokerHost, transaction: TransactionMetadata, version: int, *, commits: bool
) -> tuple[ErrorCode, int]:
    """Ask a coordinator as the transaction's own producer does; return the code, and the epoch to go on with."""
    request = EndTxnRequest(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        committed=commits,
    )
    network = cluster.client_machine("asker").network
    async with open_connection(asked.host.name, PORT, CONNECTION, network=network) as connection:
        answer = await connection.request(request, timeout_ms=9000, version=version)
    return error_code(answer.error_code), answer.producer_epoch


async def open_one(cluster: Cluster, level: int) -> str:
    """Make topics, write one transaction, and return an id that the coordinator has."""
    if level == 1:
        assert await update(cluster, ("transaction.version", 1, SAFE_DOWNGRADE)) is None
        await until(
            lambda: all(image_of(host).features["transaction.version"] == 1 for host in cluster.brokers.values())
        )
    await make_topic(cluster)
    await write(cluster, "warm", [b"warm"], commits=True)
    return name_coordinated_by(cluster, COORDINATOR)


@pytest.mark.parametrize(
    ("death", "level"),
    [*((each, 2) for each in DEATHS), *((each, 1) for each in DEATHS if each.markers == SOME or each.is_complete)],
    ids=str,
)
def test_what_was_decided_is_carried_out_by_the_next_coordinator_and_said_to_who_asks_again(
    death: Death, level: int
) -> None:
    async def main(cluster: Cluster) -> list[list[bytes]]:
        name, old = await open_one(cluster, level), cluster.brokers[COORDINATOR]
        async with cluster.producer(name, settings_of(name)) as producer:
            await begin(producer, b"one")
            transaction = transactions_of(old)[name]
            if not death.is_complete:
                broker_of(old).parts.view.markers = SomeMarkers(markers_by(old), death.markers)
            cluster.network.cut(old.host.host, cluster.client_host(name).host)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: end(producer, commits=death.is_commit))
                await until(lambda: state_of(old, name) is death.state)
                await until(lambda: ended_in(cluster, transaction.producer_id) == list(range(death.markers)))
                old.crash()
            # The producer has its answer, by asking again; and so has whoever asks for the same once more.
            await until(lambda: coordinator_of(cluster, name) is not old)
            new = coordinator_of(cluster, name)
            await until(lambda: name in transactions_of(new) and state_of(new, name).text.startswith("Complete"))
            assert state_of(new, name).text == ("CompleteCommit" if death.is_commit else "CompleteAbort")
            version, epoch = (5, transaction.producer_epoch + 1) if level == 2 else (4, -1)
            again = [await ask_to_end(cluster, new, transaction, version, commits=each) for each in (True, False)]
            assert again[not death.is_commit] == (ErrorCode.NONE, epoch)
            assert again[death.is_commit] == (ErrorCode.INVALID_TXN_STATE, -1)

            assert ended_in(cluster, transaction.producer_id) == list(range(PARTITIONS))
            for partition in range(PARTITIONS):
                replica = leading(cluster, partition)
                is_twice = not death.is_complete and partition < death.markers
                assert len(markers_of(replica, transaction.producer_id)) == 1 + is_twice
                assert aborted_of(replica, transaction.producer_id) == (not death.is_commit)
            await begin(producer, b"two")
            await producer.commit_transaction()
        return await read_committed(cluster)

    committed = [b"warm", b"one", b"two"] if death.is_commit else [b"warm", b"two"]

    assert in_cluster(main, settings=SETTINGS) == [committed] * PARTITIONS


@pytest.mark.parametrize("level", [1, 2])
def test_markers_of_a_coordinator_that_stood_still_end_nothing_that_was_begun_since(level: int) -> None:
    """It has prepared an abort; the next one carries it out; its own markers arrive in another transaction."""

    async def main(cluster: Cluster) -> tuple[list[list[bytes]], set[ErrorCode]]:
        name, old = await open_one(cluster, level), cluster.brokers[COORDINATOR]
        async with cluster.producer(name, settings_of(name)) as producer:
            await begin(producer, b"one")
            broker_of(old).parts.view.markers = held = HeldMarkers(markers_by(old))
            await producer.abort_transaction()
            await until(lambda: state_of(old, name) is TransactionState.PREPARE_ABORT and bool(held.held))
            old.pause()
            await begin(producer, b"two")
            new = coordinator_of(cluster, name)
            assert new is not old
            assert state_of(new, name) is TransactionState.ONGOING
            old.resume()
            held.let_go()
            await until(lambda: not image_of(cluster.brokers[1]).brokers[COORDINATOR].is_fenced and bool(held.codes))
            await trio.sleep(5)
            assert all(leading(cluster, each).producers.transactions.unstable_count == 1 for each in range(PARTITIONS))
            await producer.commit_transaction()
        return await read_committed(cluster), held.codes

    values, codes = in_cluster(main, settings=SETTINGS)

    assert values == [[b"warm", b"two"]] * PARTITIONS
    assert codes == {ErrorCode.NOT_LEADER_OR_FOLLOWER, TOO_LATE[level]}
