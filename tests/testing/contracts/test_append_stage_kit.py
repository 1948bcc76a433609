"""The kit of append stages itself: every test of the kit finds a stage that breaks its promise."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import attrs
import pytest

from odradek.kernel.api import (
    AppendStage,
    AppendStageFactory,
    BatchBuilder,
    Diverted,
    TopicIdPartition,
    read_batch,
    read_header,
)
from odradek.testing.contracts.append_stage import AppendStageContract


class Stage:
    def accept(self, batch: memoryview) -> memoryview | bytes | Diverted | None:
        return batch


class Replaces(Stage):
    def accept(self, batch: memoryview) -> bytes:
        return bytes(batch)


class TakesAway(Stage):
    def accept(self, batch: memoryview) -> None:
        return None


class BreaksTheCrc(Stage):
    def accept(self, batch: memoryview) -> bytes:
        return bytes(batch[:-1]) + bytes([batch[-1] ^ 1])


class ChangesInPlace(Stage):
    def accept(self, batch: memoryview) -> memoryview:
        batch[-1] ^= 1
        return batch


class KeepsTheBatch(Stage):
    def __init__(self) -> None:
        self.seen: list[memoryview] = []

    def accept(self, batch: memoryview) -> memoryview:
        self.seen.append(batch[:1])
        return batch


class ForgetsTheProducer(Stage):
    def accept(self, batch: memoryview) -> bytes:
        builder = BatchBuilder()
        builder.extend(read_batch(batch, 0, read_header(batch)))
        return bytes(builder.build())


class ForgetsTheTransaction(Stage):
    def accept(self, batch: memoryview) -> bytes:
        header = read_header(batch)
        builder = attrs.evolve(BatchBuilder.like(header), is_transactional=False)
        builder.extend(read_batch(batch, 0, header))
        return bytes(builder.build())


class DropsARecord(Stage):
    def accept(self, batch: memoryview) -> memoryview | bytes:
        header = read_header(batch)
        builder = BatchBuilder.like(header)
        builder.extend(list(read_batch(batch, 0, header))[:-1])
        return bytes(builder.build()) if builder.records_count else batch


class DivertsAnothers(ForgetsTheProducer):
    def accept(self, batch: memoryview) -> Diverted:  # type: ignore[override] # a stage may give either
        return Diverted(before=bytes(batch), batch=super().accept(batch))


class DivertsAndBreaksTheCrc(BreaksTheCrc):
    def accept(self, batch: memoryview) -> Diverted:  # type: ignore[override] # a stage may give either
        return Diverted(before=bytes(batch), batch=bytes(batch), behind=super().accept(batch))


SHARED = Stage()


def makes(stage: type[Stage]) -> AppendStageFactory:
    def factory(partition: TopicIdPartition, settings: Mapping[str, object]) -> AppendStage | None:
        return stage() if settings else None

    return factory


def contract_of(factory: AppendStageFactory) -> AppendStageContract:
    class Contract(AppendStageContract):
        def make_factory(self) -> AppendStageFactory:
            return factory

        def settings_in_use(self) -> Mapping[str, object]:
            return {"on": True}

        def settings_not_in_use(self) -> Mapping[str, object]:
            return {}

    return Contract()


VALID = "test_a_batch_is_kept_taken_away_refused_or_replaced_by_one_valid_batch"
PRODUCERS = "test_a_new_batch_has_the_records_and_the_producer_of_the_one_that_came"
BROKEN: dict[str, AppendStageFactory] = {
    "test_a_topic_that_does_not_ask_for_it_pays_nothing": lambda partition, settings: Stage(),
    "test_a_topic_that_asks_for_it_gets_a_stage_of_its_own": lambda partition, settings: SHARED if settings else None,
    VALID: makes(BreaksTheCrc),
    PRODUCERS: makes(ForgetsTheProducer),
    "test_the_producers_bytes_are_never_changed_in_place": makes(ChangesInPlace),
    "test_the_batch_is_not_held_after_the_call": makes(KeepsTheBatch),
}
TESTS = [name for name, _ in inspect.getmembers(AppendStageContract, inspect.isfunction) if name.startswith("test_")]


@pytest.mark.parametrize("stage", [Stage, Replaces, TakesAway])
@pytest.mark.parametrize("name", TESTS)
def test_a_good_stage_passes(name: str, stage: type[Stage]) -> None:
    getattr(contract_of(makes(stage)), name)()


@pytest.mark.parametrize("name", TESTS)
def test_a_broken_stage_is_found(name: str) -> None:
    with pytest.raises((AssertionError, BufferError)):
        getattr(contract_of(BROKEN[name]), name)()


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        (PRODUCERS, ForgetsTheTransaction),
        (PRODUCERS, DropsARecord),
        (PRODUCERS, DivertsAnothers),
        (VALID, DivertsAndBreaksTheCrc),
    ],
)
def test_each_way_to_break_a_promise_is_found(name: str, stage: type[Stage]) -> None:
    with pytest.raises(AssertionError):
        getattr(contract_of(makes(stage)), name)()
