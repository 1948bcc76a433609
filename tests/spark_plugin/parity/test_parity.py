"""Our data source beside Spark's Kafka connector, in one session, on one Apache Kafka.

Needs Java, Maven and the folder of peers, and a pyspark: `tox -e spark-parity` has 4.2.0, the newest that the connector
is published for; `spark-parity-4.0` has the connector alone, as ours needs a younger Spark; `spark-parity-4.3` has ours
alone, held to what was recorded of the newest connector. Where there is no Spark ours is held to what was recorded of
both versions (`test_parity_recorded`).
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from tests.interop.brokers import kafka_at
from tests.interop.clients import skip_or_fail
from tools.spark_connector import TOKEN_PROVIDERS, NoConnectorError, jars_for

from . import topics
from .differences import RECORDED, essence, expected, held_to
from .inputs import STREAM
from .observe import Observer
from .scenarios import INPUTS, observe
from .session import start_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: tox -e spark-parity")
pytestmark = pytest.mark.spark_parity
needs_admission_control = pytest.mark.skipif(
    not importlib.util.find_spec("pyspark.sql.streaming.datasource"), reason="our source needs pyspark 4.2"
)
has_connector = pyspark.__version__ in TOKEN_PROVIDERS
needs_connector = pytest.mark.skipif(not has_connector, reason="Maven Central has no connector for this pyspark")
CASES = [pytest.param(kind, name, id=f"{kind}: {name}") for kind, names in INPUTS.items() for name in names]


@pytest.fixture(scope="module")
def observers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Observer]]:
    try:
        jars = jars_for(pyspark.__version__) if has_connector else []
    except NoConnectorError as error:
        skip_or_fail(str(error))
        raise
    with kafka_at(tmp_path_factory.mktemp("kafka")) as kafka:
        topics.fill(kafka.address)
        spark = start_session(jars, tmp_path_factory.mktemp("python"))
        yield {name: Observer(spark, name, kafka.address) for name in ("kafka", "odradek")}
        spark.stop()


@needs_connector
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_connector_does_what_was_recorded_of_it(observers: dict[str, Observer], kind: str, name: str) -> None:
    outcome = observe(observers["kafka"], kind, name, "kafka")

    assert essence(outcome) == essence(RECORDED[pyspark.__version__][kind][name]), outcome


@needs_admission_control
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_ours_does_what_the_connector_does(observers: dict[str, Observer], kind: str, name: str) -> None:
    outcome = observe(observers["odradek"], kind, name, "odradek")

    assert essence(outcome) == expected(held_to(pyspark.__version__), kind, name), outcome


@needs_connector
@needs_admission_control
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


@needs_connector
@needs_admission_control
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
