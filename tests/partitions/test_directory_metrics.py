"""Metrics of log directories: Kafka's names, one value for each directory and one for all."""

from __future__ import annotations

import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from odradek.kernel.contracts.log_values import LogDirInfo
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.partitions.byte_rate import ByteRate
from odradek.kernel.partitions.directory_metrics import directory_metrics
from odradek.kernel.partitions.replicas import Replicas
from odradek.kernel.plugin_system.offers import joined_metrics

MANAGER = "kafka_log_logmanager_"


COPIED = "kafka_server_alterlogdirsreplication_byte_rate"


def values(errors: dict[str, str], cordoned: set[str], copied_bytes: int = 0) -> dict[str, Any]:
    infos = [LogDirInfo(path, uuid.UUID(int=1), error, -1, -1) for path, error in errors.items()]
    engines = {"segment": SimpleNamespace(log_dirs=lambda: infos), "memory": SimpleNamespace(log_dirs=tuple)}
    replicas = cast("Replicas", SimpleNamespace(engines=engines))
    rate = ByteRate(ManualClock(0), windows_count=3, window_ms=1000)
    rate.note(copied_bytes)
    metrics = joined_metrics(directory_metrics(replicas, cordoned.__contains__, rate))
    return {metric.name.removeprefix(MANAGER): dict(metric.read()) for metric in metrics}


def test_each_directory_tells_whether_it_is_offline_or_cordoned_and_the_counts_sum_it_up() -> None:
    found = values({"/one": "", "/two": "broken", "/three": ""}, {"/two", "/three"})

    assert found == {
        "offlinelogdirectorycount": {(): 1},
        "logdirectoryoffline": {("/one",): 0, ("/two",): 1, ("/three",): 0},
        "cordonedlogdirectorycount": {(): 2},
        "logdirectorycordoned": {("/one",): 0, ("/two",): 1, ("/three",): 1},
        COPIED: {(): 0},
    }


def test_a_broker_without_directories_counts_none() -> None:
    assert values({}, set()) == {
        "offlinelogdirectorycount": {(): 0},
        "logdirectoryoffline": {},
        "cordonedlogdirectorycount": {(): 0},
        "logdirectorycordoned": {},
        COPIED: {(): 0},
    }


def test_what_is_copied_to_other_directories_is_told_as_bytes_a_second() -> None:
    assert values({}, set(), copied_bytes=5_000)[COPIED] == {(): 2_500}


def test_every_metric_of_directories_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text()

    names = [name if name == COPIED else f"{MANAGER}{name}" for name in values({}, set())]
    assert [name for name in names if f"`{name}`" not in page] == []
