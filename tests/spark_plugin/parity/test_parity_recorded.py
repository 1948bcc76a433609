"""Our source, without Spark, held to what was recorded of Spark's Kafka connector, and to the list of differences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.testing.running_broker import running_broker

from . import topics
from .differences import MEANT, RECORDED, essence, expected
from .direct import DirectObserver
from .inputs import BATCH, STREAM
from .scenarios import LOSSES, WRITES, lose

if TYPE_CHECKING:
    from collections.abc import Iterator

HOW_TO = Path(__file__).parents[3] / "docs/how-to/spark.md"


@pytest.fixture(scope="module")
def observer() -> Iterator[DirectObserver]:
    with running_broker({"log.retention.ms": -1}) as broker:
        topics.fill(broker.bootstrap)
        yield DirectObserver(broker.bootstrap)


@pytest.mark.parametrize("name", BATCH)
def test_a_batch_is_what_the_connector_gives(observer: DirectObserver, name: str) -> None:
    outcome = observer.batch(BATCH[name])

    assert essence(outcome) == expected("batch", name), outcome


@pytest.mark.parametrize("name", STREAM)
def test_a_stream_is_what_the_connector_gives(observer: DirectObserver, name: str) -> None:
    outcome = observer.stream(STREAM[name])

    assert essence(outcome) == expected("stream", name), outcome


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_what_the_connector_writes(observer: DirectObserver, name: str) -> None:
    outcome = observer.write(name, "direct")

    assert essence(outcome) == expected("write", name), outcome


@pytest.mark.parametrize("fails", [True, False], ids=["failOnDataLoss", "or not"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_met_as_the_connector_does(observer: DirectObserver, name: str, fails: bool) -> None:
    outcome = lose(observer, name, "direct", fails=fails)

    assert essence(outcome) == expected("loss", f"{name}, failOnDataLoss {str(fails).lower()}"), outcome


def test_a_difference_is_of_an_input_that_was_recorded_and_is_one() -> None:
    wrong = [
        f"{kind}: {name}"
        for kind, names in MEANT.items()
        for name, meant in names.items()
        if name not in RECORDED[kind] or expected(kind, name) == essence(RECORDED[kind][name]) or not meant["why"]
    ]

    assert not wrong


def test_every_difference_is_told_with_its_reason() -> None:
    page = HOW_TO.read_text(encoding="utf-8")
    untold = [meant["why"] for names in MEANT.values() for meant in names.values() if meant["why"] not in page]

    assert not untold
