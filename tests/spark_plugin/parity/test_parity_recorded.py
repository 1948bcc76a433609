"""Our source, without Spark, held to what was recorded of Spark's Kafka connector, and to the list of differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.testing.running_broker import running_broker

from . import topics
from .differences import MEANT, RECORDED, VERSIONS, applies, essence, expected, held_to
from .direct import DirectObserver
from .inputs import BATCH, STREAM
from .scenarios import INPUTS, LOSSES, WRITES, lose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .observe import Outcome

HOW_TO = Path(__file__).parents[3] / "docs/how-to/spark.md"


@pytest.fixture(scope="module")
def observer() -> Iterator[DirectObserver]:
    with running_broker({"log.retention.ms": -1}) as broker:
        topics.fill(broker.bootstrap)
        yield DirectObserver(broker.bootstrap)


# One run for both: what the versions answer differently is one input, which `differences.toml` names.


@pytest.mark.parametrize("name", BATCH)
def test_a_batch_is_what_the_connector_gives(observer: DirectObserver, name: str) -> None:
    outcome = observer.batch(BATCH[name])

    assert shown(outcome) == wanted("batch", name), outcome


@pytest.mark.parametrize("name", STREAM)
def test_a_stream_is_what_the_connector_gives(observer: DirectObserver, name: str) -> None:
    outcome = observer.stream(STREAM[name])

    assert shown(outcome) == wanted("stream", name), outcome


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_what_the_connector_writes(observer: DirectObserver, name: str) -> None:
    outcome = observer.write(name, "direct")

    assert shown(outcome) == wanted("write", name), outcome


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_met_as_the_connector_does(observer: DirectObserver, name: str) -> None:
    outcome = lose(observer, name, "direct")

    assert shown(outcome) == wanted("loss", name), outcome


def shown(outcome: Outcome) -> dict[str, Any]:
    """Return what ours shows, for each version of the connector."""
    return dict.fromkeys(VERSIONS, essence(outcome))


def wanted(kind: str, name: str) -> dict[str, Any]:
    """Return what ours is to show, by the version of the connector that it is held to."""
    return {version: expected(version, kind, name) for version in VERSIONS}


@pytest.mark.parametrize(
    ("version", "connector"), [("4.0.0", "4.0.0"), ("4.1.2", "4.0.0"), ("4.2.0", "4.2.0"), ("4.3.0", "4.2.0")]
)
def test_a_spark_without_a_connector_is_held_to_the_newest_before_it(version: str, connector: str) -> None:
    assert held_to(version) == connector


def test_every_version_was_asked_the_same() -> None:
    asked = {version: {kind: [*RECORDED[version][kind]] for kind in INPUTS} for version in VERSIONS}

    assert asked == {key: {kind: [*names] for kind, names in INPUTS.items()} for key in VERSIONS}


def test_a_difference_is_of_an_input_that_was_recorded_and_is_one() -> None:
    wrong = [
        f"{kind}: {name}, {version}"
        for kind, names in MEANT.items()
        for name, meant in names.items()
        for version in VERSIONS
        if name not in RECORDED[version][kind]
        or (expected(version, kind, name) == essence(RECORDED[version][kind][name])) is applies(meant, version)
        or not meant["why"]
    ]

    assert not wrong


def test_versions_of_the_connector_differ_where_the_list_says_so() -> None:
    differing = [
        (kind, name)
        for kind, names in INPUTS.items()
        for name in names
        if len({json.dumps(essence(RECORDED[version][kind][name])) for version in VERSIONS}) > 1
    ]
    listed = [(kind, name) for kind, names in MEANT.items() for name, meant in names.items() if "connector" in meant]

    assert differing == listed


def test_every_difference_is_told_with_its_reason() -> None:
    page = HOW_TO.read_text(encoding="utf-8")
    untold = [meant["why"] for names in MEANT.values() for meant in names.values() if meant["why"] not in page]

    assert not untold
