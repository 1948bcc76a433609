"""Shell: how the log directories are, under the names that Kafka's metrics commonly get in Prometheus.

*Source:* `LogManager` of Kafka 4.3.1, which has these four gauges; KIP-1066 on cordoned directories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..contracts.services import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..contracts.log_values import LogDirInfo
    from .byte_rate import ByteRate
    from .replicas import Replicas

    Judge = Callable[[LogDirInfo], bool]

_MANAGER: Final = "kafka_log_logmanager_"


def directory_metrics(
    replicas: Replicas, is_cordoned: Callable[[str], bool], moved_rate: ByteRate
) -> Iterator[tuple[str, Metric]]:
    """Yield the metrics of log directories, each with the name of who offers it.

    Args:
        replicas: Knows the storage engines, whose directories they are.
        is_cordoned: Says of a directory's path whether nothing new comes there.
        moved_rate: Of what is copied from one to another.
    """

    def directories() -> list[LogDirInfo]:
        return [info for engine in replicas.engines.values() for info in engine.log_dirs()]

    def count(holds: Judge) -> Callable[[], Mapping[tuple[str, ...], float]]:
        return lambda: {(): sum(map(holds, directories()))}

    def each(holds: Judge) -> Callable[[], Mapping[tuple[str, ...], float]]:
        return lambda: {(info.path,): int(holds(info)) for info in directories()}

    rows: tuple[tuple[str, str, Judge], ...] = (
        ("offline", "that cannot be used", lambda info: bool(info.error)),
        ("cordoned", "that get no new logs", lambda info: is_cordoned(info.path)),
    )
    for name, what, holds in rows:
        text = f"Log directories {what}."
        yield "directories", Metric(f"{_MANAGER}{name}logdirectorycount", text, "gauge", count(holds))
        text = f"1 for each of the log directories {what}, 0 for the others."
        yield "directories", Metric(f"{_MANAGER}logdirectory{name}", text, "gauge", each(holds), ("logDirectory",))
    text = "Bytes a second lately copied to other log directories."
    name = "kafka_server_alterlogdirsreplication_byte_rate"
    yield "directories", Metric(name, text, "gauge", lambda: {(): moved_rate.bytes_a_second()})
