"""The Spark session of the parity tests: the connector's jars in it, and our data source beside them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from odradek.cli.demo.spark_process import quick_python

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession


def start_session(jars: Sequence[Path], folder: Path) -> SparkSession:
    """Start Spark on two threads of this machine, quietly; `folder` is for a program that its Pythons are."""
    python = quick_python(folder / "python")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(python)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.jars": ",".join(map(str, jars)),
    }
    builder = SparkSession.builder.master("local[2]").appName("odradek-parity")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # most errors here are meant
    return session
