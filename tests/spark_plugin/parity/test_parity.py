"""Our data source beside Spark's Kafka connector, in one session, on one Apache Kafka.

Runs where the pyspark is one that the connector is published for, with Java, Maven and the folder of peers: `tox -e
spark-parity`. Elsewhere ours is held to what was recorded of the connector (`test_parity_recorded`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.brokers import kafka_at
from tools.spark_connector import NoConnectorError, jars_for

from . import topics
from .differences import essence, expected
from .inputs import BATCH, STREAM
from .observe import Observer
from .scenarios import LOSSES, WRITES, lose, write
from .session import start_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: tox -e spark-parity")
pytestmark = pytest.mark.spark_parity


@pytest.fixture(scope="module")
def observers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Observer]]:
    try:
        jars = jars_for(pyspark.__version__)
    except NoConnectorError as error:
        pytest.skip(str(error))
    with kafka_at(tmp_path_factory.mktemp("kafka")) as kafka:
        topics.fill(kafka.address)
        spark = start_session(jars)
        yield {name: Observer(spark, name, kafka.address) for name in ("kafka", "odradek")}
        spark.stop()


@pytest.mark.parametrize("name", BATCH)
def test_a_batch(observers: dict[str, Observer], name: str) -> None:
    outcome = observers["odradek"].batch(BATCH[name])

    assert essence(outcome) == expected("batch", name), outcome


@pytest.mark.parametrize("name", STREAM)
def test_a_stream(observers: dict[str, Observer], name: str) -> None:
    outcome = observers["odradek"].stream(STREAM[name])

    assert essence(outcome) == expected("stream", name), outcome


@pytest.mark.parametrize("name", WRITES)
def test_a_write(observers: dict[str, Observer], name: str) -> None:
    outcome = write(observers["odradek"], name, "odradek")

    assert essence(outcome) == expected("write", name), outcome


@pytest.mark.parametrize("fails", [True, False], ids=["failOnDataLoss", "or not"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss(observers: dict[str, Observer], name: str, fails: bool) -> None:
    outcome = lose(observers["odradek"], name, "odradek", fails=fails)

    assert essence(outcome) == expected("loss", f"{name}, failOnDataLoss {str(fails).lower()}"), outcome


@pytest.mark.parametrize("name", BATCH)
def test_what_was_recorded_of_the_connectors_batches_still_holds(observers: dict[str, Observer], name: str) -> None:
    from .differences import RECORDED

    outcome = observers["kafka"].batch(BATCH[name])

    assert essence(outcome) == essence(RECORDED["batch"][name]), outcome


def test_progress_has_the_same_offsets_and_the_lag_can_be_computed(observers: dict[str, Observer]) -> None:
    from odradek.spark_plugin.progress import behind_latest, offsets_in

    options = STREAM["maxOffsetsPerTrigger 600"]
    theirs, ours = (observers[name].stream(options)["progress"] for name in ("kafka", "odradek"))
    offsets = ("endOffset", "latestOffset")

    assert [[event[key] for key in offsets] for event in ours] == [[event[key] for key in offsets] for event in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        behind = behind_latest(offsets_in(mine["endOffset"]) or {}, offsets_in(mine["latestOffset"]) or {})

        assert behind is not None
        assert behind.as_metrics() == other["metrics"]


@pytest.mark.parametrize(("first", "second"), [("kafka", "odradek"), ("odradek", "kafka")])
def test_one_goes_on_from_the_others_checkpoint(
    observers: dict[str, Observer], tmp_path: Path, first: str, second: str
) -> None:
    topic = f"handed-from-{first}-to-{second}"
    bootstrap = observers[first].bootstrap
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "100"}
    topics.create_topic(bootstrap, topic, 2)
    topics.produce_numbers(bootstrap, topic, 2, 100)
    before = observers[first].stream(options, tmp_path)
    topics.produce_numbers(bootstrap, topic, 2, 50)
    after = observers[second].stream(options, tmp_path)

    assert (before.get("batches"), after.get("batches")) == ([100, 100], [100]), after
