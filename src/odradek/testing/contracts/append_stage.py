"""Shell: the contract kit of append stages: subclass `AppendStageContract` and give `make_factory`.

Needs pytest. Each test's name is the promise it checks.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from odradek.kernel.api import (
    BatchBuilder,
    CompressionType,
    Diverted,
    KafkaError,
    TopicIdPartition,
    is_crc_valid,
    iterate_batches,
    read_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.kernel.contracts.append_stage import AppendStage, AppendStageFactory
    from odradek.kernel.types import Buffer

PARTITION = TopicIdPartition(uuid.UUID(int=7), "orders", 0)
_TIMESTAMP_MS = 1_700_000_000_000


def sample_batches() -> Iterator[bytearray]:
    """Iterate over batches as producers send them: small and large, every codec, nulls, idempotent, transactional."""
    for codec in CompressionType:
        for count in (1, 2, 500):
            builder = BatchBuilder(compression=codec)
            for number in range(count):
                builder.append(b"%d" % number, b"value" * number, timestamp=_TIMESTAMP_MS + number)
            yield bytearray(builder.build())
    for is_transactional in (False, True):
        builder = BatchBuilder(producer_id=9, producer_epoch=2, base_sequence=5, is_transactional=is_transactional)
        builder.append(None, None, timestamp=_TIMESTAMP_MS)
        builder.append(b"key", b"value", timestamp=_TIMESTAMP_MS, headers=[("name", b"value")])
        yield bytearray(builder.build())


def _counted(batch: Buffer) -> dict[str, object]:
    """Return what a producer's state goes by: what makes a batch known that is sent again, and the next one's place."""
    header = read_header(batch)
    return {
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_offset_delta": header.last_offset_delta,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
    }


class AppendStageContract:
    """What every append stage promises."""

    def make_factory(self) -> AppendStageFactory:
        """Return the factory that the plugin offers."""
        raise NotImplementedError

    def settings_in_use(self) -> Mapping[str, object]:
        """Return the settings of a topic that uses the stage, by key."""
        raise NotImplementedError

    def settings_not_in_use(self) -> Mapping[str, object]:
        """Return the settings of a topic that does not: the defaults of the plugin's keys."""
        raise NotImplementedError

    def _stage(self) -> AppendStage:
        stage = self.make_factory()(PARTITION, self.settings_in_use())
        assert stage is not None, "the settings of `settings_in_use` must make a stage"
        return stage

    def test_a_topic_that_does_not_ask_for_it_pays_nothing(self) -> None:
        assert self.make_factory()(PARTITION, self.settings_not_in_use()) is None

    def test_a_topic_that_asks_for_it_gets_a_stage_of_its_own(self) -> None:
        factory = self.make_factory()
        first, second = (factory(PARTITION, self.settings_in_use()) for _ in range(2))

        assert None not in (first, second)
        assert first is not second

    def test_a_batch_is_kept_taken_away_refused_or_replaced_by_one_valid_batch(self) -> None:
        stage = self._stage()
        for batch in sample_batches():
            view = memoryview(batch)
            try:
                accepted = stage.accept(view)
            except KafkaError:
                continue
            if accepted is None or accepted is view:
                continue
            around = (
                (accepted.before, accepted.batch, accepted.behind) if isinstance(accepted, Diverted) else (accepted,)
            )
            for part in around:
                if part is None:
                    continue
                ((_position, header),) = iterate_batches(part)

                assert header.length_bytes == len(part)
                assert is_crc_valid(part, 0, header)

    def test_a_new_batch_has_the_records_and_the_producer_of_the_one_that_came(self) -> None:
        stage = self._stage()
        for batch in sample_batches():
            accepted: Buffer | Diverted | None = None
            with suppress(KafkaError):
                accepted = stage.accept(memoryview(batch))
            if accepted is not None:
                assert _counted(batch) == _counted(accepted.batch if isinstance(accepted, Diverted) else accepted)

    def test_the_producers_bytes_are_never_changed_in_place(self) -> None:
        stage = self._stage()
        for batch in sample_batches():
            before = bytes(batch)
            with suppress(KafkaError):
                stage.accept(memoryview(batch))

            assert before == bytes(batch)

    def test_the_batch_is_not_held_after_the_call(self) -> None:
        stage = self._stage()
        for batch in sample_batches():
            view = memoryview(batch)
            with suppress(KafkaError):
                stage.accept(view)
            view.release()
            batch.clear()  # a BufferError: the stage still looks at it
