"""Records what Spark's Kafka connector does: `python -m tests.spark_plugin.parity.record` writes `connector.json`.

Needs the pyspark that the connector is published for (`tox -e spark-parity --notest` brings it), Java, Maven and the
folder of peers.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.interop.brokers import kafka_at
from tools.spark_connector import jars_for

from . import topics
from .inputs import BATCH, STREAM
from .observe import Observer
from .scenarios import LOSSES, WRITES, lose, write
from .session import start_session

if TYPE_CHECKING:
    from .observe import Outcome

RECORDED = Path(__file__).with_name("connector.json")


def observe_all(observer: Observer, label: str) -> dict[str, dict[str, Outcome]]:
    """Return what a format does for every input, by kind and name."""
    return {
        "batch": {name: observer.batch(options) for name, options in BATCH.items()},
        "stream": {name: observer.stream(options) for name, options in STREAM.items()},
        "write": {name: write(observer, name, label) for name in WRITES},
        "loss": {
            f"{name}, failOnDataLoss {str(fails).lower()}": lose(observer, name, label, fails=fails)
            for name in LOSSES
            for fails in (True, False)
        },
    }


def main() -> int:
    """Record."""
    import pyspark

    session = start_session(jars_for(pyspark.__version__))
    with tempfile.TemporaryDirectory() as folder, kafka_at(Path(folder)) as kafka:
        topics.fill(kafka.address)
        observed: dict[str, Any] = {
            "origin": f"Spark {pyspark.__version__} with its connector for Kafka, on Apache Kafka 4.3.1",
            **observe_all(Observer(session, "kafka", kafka.address), "connector"),
        }
    session.stop()
    RECORDED.write_text(json.dumps(observed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
