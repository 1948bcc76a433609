"""Records what Spark's Kafka connector does: `python -m tests.spark_plugin.parity.record`, into `recorded/`.

Needs a pyspark that the connector is published for (`tox -e spark-parity --notest` brings one), Java, Maven and the
folder of peers. Only the connector runs here, so the pyspark may be older than what our own source needs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.interop.brokers import kafka_at
from tools.spark_connector import jars_for

from . import topics
from .differences import recorded_file
from .observe import Observer
from .scenarios import INPUTS, observe
from .session import start_session


def main() -> int:
    """Record."""
    import pyspark

    jars = jars_for(pyspark.__version__)
    with tempfile.TemporaryDirectory() as folder, kafka_at(Path(folder, "kafka")) as kafka:
        session = start_session(jars, Path(folder))
        topics.fill(kafka.address)
        observer = Observer(session, "kafka", kafka.address)
        observed: dict[str, Any] = {
            "origin": f"Spark {pyspark.__version__} with its connector for Kafka, on Apache Kafka 4.3.1",
            **{
                kind: {name: observe(observer, kind, name, "connector") for name in names}
                for kind, names in INPUTS.items()
            },
        }
        session.stop()
    text = json.dumps(observed, indent=1, ensure_ascii=False)
    recorded_file(pyspark.__version__).write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
