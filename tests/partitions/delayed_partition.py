"""One partition with delayed records over real segment files: produced to, killed, truncated, read as consumers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import attrs

from odradek.kernel.config.delay_checks import DelaySettings
from odradek.kernel.contracts.append_stage import Diverted
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.contracts.tiering import Tier, TierSettings
from odradek.kernel.delay.headers import DELAY_CANCEL, DELAY_ID, DELAYED_FROM, DELIVER_AFTER
from odradek.kernel.delay.ledger import DelayLedger
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.append_check import NOT_NEEDED
from odradek.kernel.partitions.delay_delivery import DelayDelivery
from odradek.kernel.partitions.delays import Delays
from odradek.kernel.partitions.following import append_as_follower, begin_anew
from odradek.kernel.partitions.leading import AppendOrigin, append_as_leader, append_diverted
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.records.batch import iterate_batches, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from odradek.kernel.records.reader import read_batch
from odradek.kernel.records.record import Record
from odradek.kernel.types import Buffer
from odradek.plugins.delay_levels.factory import LevelsFactory
from odradek.plugins.delay_levels.rounding import Rounding
from odradek.plugins.delay_wheel.factory import WheelFactory
from odradek.testing.killable_files import KillableFiles

from .hosted import PLAIN, Hosted

WAITS = DelaySettings(takes_new=True, delay_ms_max=10**12, queue="wheel")
PRODUCER = 5
LOOKS = 20
"""How often somebody looks whether a piece is committed."""


class Sent(NamedTuple):
    """One record of a test: its value, its delay in milliseconds, its name, and the name that it withdraws."""

    value: bytes
    after_ms: int = 0
    name: bytes = b""
    cancels: bytes = b""

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        after = b"%d" % self.after_ms if self.after_ms else b""
        asked = {DELIVER_AFTER: after, DELAY_ID: self.name, DELAY_CANCEL: self.cancels}
        return [(name, value) for name, value in asked.items() if value]


BY_LEVELS = attrs.evolve(WAITS, queue="levels")


class LevelsOfAMillisecond(LevelsFactory):
    """By levels, and due when it was asked for all the same."""

    def rounding(self, settings: Mapping[str, object]) -> Rounding:
        return Rounding([1])


class DelayedPartition:
    """Led by broker 1, or followed by it."""

    def __init__(
        self,
        directory: Path,
        *,
        leader: int = 1,
        log_config: LogConfig = PLAIN,
        settings: DelaySettings | None = WAITS,
        dead_letters_of: str = "",
        keys: int = 0,
        tier: Tier | None = None,
        tier_settings: TierSettings | None = None,
    ) -> None:
        self.keys = keys
        self.tier_settings = tier_settings
        self.dead_letters_of = dead_letters_of
        self.leader = leader
        self.settings = settings
        self.epoch = 0
        self.files = KillableFiles(is_flushed=False)
        self.log_config = log_config
        self.delivery: DelayDelivery
        delays = Delays(
            {"wheel": WheelFactory(), "levels": LevelsOfAMillisecond()},
            lambda: self.hosted.clock.now_ms(),
            lambda ledger, due_ms: self.delivery.note_due(ledger, due_ms),
            on_opened=lambda replica: self.delivery.watch(replica),
            on_begun=lambda replica: self.delivery.beginnings.ask(replica),
            on_unreadable=lambda partition, offset, error: self.delivery.note_unreadable(partition, offset, error),
        )
        self.hosted = Hosted(directory, files=self.files, tier=tier, delays=delays)
        self.begin()

    def begin(self) -> None:
        hosted = self.hosted
        self.delivery = DelayDelivery(replicas=hosted.replicas, writes=hosted.writes, clock=hosted.clock)
        self.take_state()

    def lead(self) -> None:
        """Become the leader, in a new epoch."""
        self.leader, self.epoch = 1, self.epoch + 1
        self.take_state()

    def take_state(self) -> None:
        """Hear who leads, and in which epoch."""
        self.hosted.open(
            "t",
            leader=self.leader,
            epoch=self.epoch,
            log_config=self.log_config,
            delay=self.settings,
            dead_letters_of=self.dead_letters_of,
            tier=self.tier_settings,
        )
        self.delivery.look_around()

    def set_key(self) -> None:
        """Have the topic get the key while it serves; what has to be read of its log is not."""
        self.settings = WAITS
        plan = Hosted.plan(self.log_config, delay=WAITS)
        run_at_once(self.hosted.lifecycle.reconfigure_topic_in_steps("t", plan))

    def restart(self) -> None:
        """Stop cleanly, and start again."""
        self.hosted.restart()
        self.begin()

    def read_again(self) -> None:
        """Stop cleanly, and start again with nothing of what waits kept beside the log."""
        self.close()
        for place in self.hosted.dirs:
            for path in Path(place).glob("t-0/*.delay"):
                path.unlink()
        self.hosted.begin()
        self.begin()

    def kill(self) -> None:
        """End without a goodbye: what was written is there, and nothing was kept beside it."""
        self.files.kill()
        self.close()
        self.files = self.hosted.files = KillableFiles(is_flushed=False)
        self.hosted.begin()
        self.begin()

    def close(self) -> None:
        self.hosted.lifecycle.close()

    @property
    def replica(self) -> Replica:
        return self.hosted.replicas.get("t", 0)

    @property
    def ledger(self) -> DelayLedger:
        assert self.replica.delays is not None

        return self.replica.delays

    @property
    def now_ms(self) -> int:
        return self.hosted.clock.now_ms()

    def produce(
        self,
        records: Sequence[Sent],
        sequence: int = -1,
        *,
        is_transactional: bool = False,
        codec: CompressionType = CompressionType.NONE,
    ) -> int | None:
        """Append one batch as a Produce does; return its base offset, None for one that is there already."""
        builder = BatchBuilder(
            producer_id=PRODUCER if sequence >= 0 else -1,
            producer_epoch=0 if sequence >= 0 else -1,
            base_sequence=sequence,
            is_transactional=is_transactional,
            compression=codec,
        )
        for sent in records:
            key = b"%d" % (int(sent.value or 0) % self.keys) if self.keys else None
            builder.append(key, sent.value, timestamp=self.now_ms - 7, headers=sent.headers)
        batch = memoryview(builder.build())
        accepted: Diverted | Buffer | None = batch
        for stage in self.replica.stages:
            accepted = stage.accept(batch)
        assert accepted is not None
        data = memoryview(bytearray(accepted.batch if isinstance(accepted, Diverted) else accepted))
        header = read_header(data)
        if isinstance(accepted, Diverted):
            original = append_diverted(accepted, self.replica, data, header, 1, verified=NOT_NEEDED)
        else:
            original = append_as_leader(self.replica, data, header, 1, verified=NOT_NEEDED)
        self.write()
        return header.base_offset if original is None else None

    def end_transaction(self, *, is_commit: bool) -> None:
        kind = ControlRecordType.COMMIT if is_commit else ControlRecordType.ABORT
        marker = build_control_batch(
            [EndTransactionMarker(kind, 0)], timestamp=self.now_ms, producer_id=PRODUCER, producer_epoch=0
        )
        append_as_leader(self.replica, memoryview(marker), read_header(marker), 1, origin=AppendOrigin.COORDINATOR)
        self.write()

    def write(self) -> None:
        self.hosted.writes.stage(self.replica)
        self.write_staged()

    def write_staged(self) -> None:
        """Write what is staged, and flush what is to be flushed."""
        writes = self.hosted.writes
        writes.write_staged()
        queue, writes.flush_queue = writes.flush_queue, []
        for replica in queue:
            replica.log.flush()
            writes.note_flushed(replica, replica.log, None)

    def deliver(self) -> None:
        """Have all that is due appended."""
        while ledgers := self.delivery.take_due():
            before = self.replica.log.log_end_offset
            for ledger in ledgers:
                self.delivery.deliver(ledger)
            self.hosted.writes.write_staged()
            if self.replica.log.log_end_offset == before:
                return

    def pass_time(self, duration_ms: int) -> None:
        self.hosted.clock.advance(duration_ms)
        self.deliver()

    def carry(self, below: int) -> int:
        """Have what waits below an offset carried forward, as far as it is committed; return how many records."""
        carrying = self.delivery.carrying.begin(self.replica, below)
        for _ in range(LOOKS):
            if not run_at_once(carrying.step()):
                break
            self.write_staged()
        return carrying.carried_count

    def take_segments(self, below: int) -> int:
        """Do what retention does: carry forward, and delete what lies below an offset in whole segments."""
        count = self.carry(below)
        self.replica.log.delete_segments_below(self.replica.log.log_start_offset)
        return count

    def rot(self, offset: int) -> None:
        """Have the disk forget a bit of the last record of the batch at an offset."""
        (path,) = (path for place in self.hosted.dirs for path in Path(place).glob("t-0/00000000000000000000.log"))
        data = bytearray(path.read_bytes())
        (end,) = (
            position + header.length_bytes for position, header in iterate_batches(data) if header.base_offset == offset
        )
        data[end - 2] ^= 0x20
        path.write_bytes(data)

    def replicated(self, directory: Path) -> DelayedPartition:
        """Return a replica that came when the log was as it is now, and leads: all that it knows it has from there."""
        late = DelayedPartition(directory, leader=2, log_config=self.log_config, settings=self.settings)
        late.hosted.clock.advance(self.now_ms - late.now_ms)
        start = self.replica.log.log_start_offset
        begin_anew(late.replica, start, late.now_ms)
        for batch in self.replica.log.batches(start):
            if read_header(batch).base_offset >= start:
                append_as_follower(late.replica, memoryview(bytes(batch)))
        late.replica.write()
        late.replica.raise_high_watermark(late.replica.log.log_end_offset)
        late.lead()
        return late

    def batches(self) -> list[Buffer]:
        return [bytes(batch) for batch in self.replica.log.batches(0)]

    def seen(self) -> list[Record]:
        """Return what a consumer sees that knows nothing of transactions."""
        found: list[Record] = []
        for batch in self.batches():
            header = read_header(batch)
            if not header.is_control:
                found += read_batch(batch, 0, header)
        return found

    def values(self) -> list[bytes | None]:
        return [record.value for record in self.seen()]

    def delivered(self) -> list[Record]:
        return [record for record in self.seen() if DELAYED_FROM in dict(record.headers)]
