"""Fault loops over a log with transactions: a committed one is whole, an aborted one invisible, whatever fails.

The gate takes every so many faults; `-m sweep` takes all.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import pytest

from odradek.kernel.api import LogConfig, StorageError
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.partitions.transaction_index import TRANSACTION_INDEX_KIND, decode_transaction_index
from odradek.kernel.records.control import ControlRecordType
from odradek.testing.faults import FaultyFiles, PowerLoss
from tests.partitions.transactional_logs import WHERE, Broker, derived, seen

CONFIG = LogConfig(
    segment_bytes=700, segment_index_bytes=240, index_interval_bytes=200, flush_messages=1, file_delete_delay_ms=0
)
MANY = 10_000


@attrs.define
class Ledger:
    """What clients were told.

    Attributes:
        values: By transaction, its records.
        ends: By transaction, its end, if that was acknowledged.
    """

    values: dict[str, list[str]] = attrs.field(factory=dict)
    ends: dict[str, ControlRecordType] = attrs.field(factory=dict)


class Transacting:
    """Three producers at work, each with transaction after transaction."""

    def __init__(self, broker: Broker, ledger: Ledger) -> None:
        self.broker = broker
        self.ledger = ledger
        self.epochs = dict.fromkeys(range(1, 4), 0)
        self.sequences = dict.fromkeys(range(1, 4), 0)

    def do(self, number: int, step: str) -> None:
        """Take a step: `b` a batch in the transaction, `c` and `a` its end, `p` a batch of no transaction."""
        epoch, sequence, broker, ledger = self.epochs[number], self.sequences[number], self.broker, self.ledger
        name = f"{number}-{epoch}"
        if step == "p":
            broker.produce([f"plain-{broker.replica.log.log_end_offset}"])
            broker.turn()
        elif step == "b":
            values = [f"{name}-{sequence + n}" for n in range(2)]
            ledger.values.setdefault(name, []).extend(values)
            broker.produce(values, number, epoch, sequence, txn=True)
            broker.turn()
            self.sequences[number] += 2
        else:
            told = broker.end(number, epoch + 1, commit=step == "c", version=2)
            broker.turn()
            if told.codes == {WHERE: ErrorCode.NONE}:
                ledger.ends[name] = ControlRecordType.COMMIT if step == "c" else ControlRecordType.ABORT
            self.epochs[number] += 1
            self.sequences[number] = 0


LIFE = (
    [(1, "b"), (2, "b"), (1, "b"), (3, "p"), (2, "a"), (1, "c"), (1, "b"), (3, "b"), (2, "b"), (1, "a")],
    [(3, "b"), (3, "p"), (2, "b"), (3, "a"), (1, "b"), (1, "c"), (2, "c"), (2, "b"), (3, "b"), (3, "a")],
    [(3, "b"), (1, "b"), (3, "c"), (2, "b"), (2, "a"), (3, "p"), (1, "b")],
)


def live(broker: Broker, ledger: Ledger) -> None:
    """A partition's life with everything that keeps transactions; the last ones stay open."""
    transacting = Transacting(broker, ledger)
    for number, steps in enumerate(LIFE):
        for step in steps:
            transacting.do(*step)
        broker.replica.keep_producers()
        broker.engine.checkpoint({broker.replica.partition: broker.replica.high_watermark})
        if number == 1:
            broker.replica.log.roll()
            start = broker.replica.log.segments()[0].next_offset
            broker.replica.log.advance_log_start(start)
            broker.replica.producers.transactions.advance_log_start(start)
    broker.lifecycle.close()


def live_through(files: FaultyFiles, directory: Path, ledger: Ledger) -> None:
    broker = None
    try:
        broker = Broker(directory, CONFIG, files=files)
        live(broker, ledger)
    except (StorageError, KafkaError):
        pass
    finally:
        if broker is not None:
            broker.engine.abandon()
        files.crash()


def check(directory: Path, ledger: Ledger) -> None:
    """Open what is left: it is what its own records say, and nothing that was acknowledged is missing."""
    for round_number in range(2):
        broker = Broker(directory, CONFIG)
        replica = broker.replica
        said = derived(replica)
        found = seen(replica, replica.log.log_start_offset, 500)

        assert (replica.last_stable_offset, found) == (said.last_stable_offset, said.visible)
        for name, kind in ledger.ends.items():
            assert {said.ends.get(value) for value in ledger.values[name]} == {kind}
        assert_indexed(broker)
        broker.produce(["more"], 50 + round_number, 0, 0, txn=True)
        broker.end(50 + round_number, 1, commit=bool(round_number), version=2)
        broker.turn()
        broker.lifecycle.close()


def assert_indexed(broker: Broker) -> None:
    log = broker.replica.log
    for base_offset in log.sidecars(TRANSACTION_INDEX_KIND):
        entries = decode_transaction_index(log.read_sidecar(base_offset, TRANSACTION_INDEX_KIND))
        (segment,) = [each for each in log.segments() if each.base_offset == base_offset]
        assert all(base_offset <= entry.last_offset < segment.next_offset for entry in entries)


def loop(numbers: Iterable[int], run: Callable[[Path, int], int]) -> None:
    """Call `run` with each number in a directory of its own, until it says that fewer operations were asked for."""
    for number in numbers:
        with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # fast
            if run(Path(name), number) < number:
                return
    pytest.fail("the loop ended before the scenario did")


def fail_once(directory: Path, number: int, *, error: int) -> int:
    ledger = Ledger()
    files = FaultyFiles(directory, fail_at=number, error=error, is_full_after=error == errno.ENOSPC)
    live_through(files, directory, ledger)
    check(directory, ledger)
    return files.operations


def lose_power(directory: Path, number: int) -> int:
    ledger = Ledger()
    (directory / "before").mkdir()
    files = FaultyFiles(directory / "before", power_lost_at=number)
    live_through(files, directory / "before", ledger)
    for style in PowerLoss:
        left = directory / style.value
        left.mkdir()
        files.after_power_loss(left, style, random.Random(number))
        check(left, ledger)
    return files.operations


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_failing_operation_breaks_no_transaction(error: int) -> None:
    loop([*range(5, 400, 37), MANY], lambda directory, number: fail_once(directory, number, error=error))


def test_a_loss_of_power_breaks_no_transaction() -> None:
    loop([*range(7, 400, 29), MANY], lose_power)


@pytest.mark.sweep
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_no_failing_operation_breaks_a_transaction(error: int) -> None:
    loop(range(1, MANY), lambda directory, number: fail_once(directory, number, error=error))


@pytest.mark.sweep
def test_no_loss_of_power_breaks_a_transaction() -> None:
    loop(range(1, MANY), lose_power)
