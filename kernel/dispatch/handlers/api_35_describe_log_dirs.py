"""Shell: DescribeLogDirs (key 35): what lies in which log directory, and how large it is.

No topics in the request means all of them; an empty list, or topics that are not here, only the directories.

*Source:* KIP-113, KIP-827 (total and usable bytes), KIP-1066 (cordoned); answers compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import are_many
from ...errors import ErrorCode
from ...wire.messages.api_35_describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ..stepped_handler import SteppedHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.log_values import LogDirInfo
    from ...partitions.future_log import FutureLog
    from ...partitions.replica import Replica
    from ...partitions.replicas import Replicas
    from ...wire.messages.api_35_describe_log_dirs import DescribeLogDirsRequest


class DescribeLogDirsHandler(SteppedHandler):
    """Answers DescribeLogDirs. Owned by the reactor's task."""

    api_key = 35

    def __init__(self, *, replicas: Replicas, is_cordoned: Callable[[str], bool]) -> None:
        self._replicas = replicas
        self._is_cordoned = is_cordoned

    def is_long(self, request: DescribeLogDirsRequest, context: RequestContext) -> bool:
        """Return whether there are many partitions in the directories."""
        topics = self._replicas.topics
        if request.topics is None:
            return are_many(len(topic.partitions) for topic in topics.values())
        return are_many(len(topic.partitions) for topic in request.topics)

    def answer_in_steps(
        self, request: DescribeLogDirsRequest, context: RequestContext
    ) -> Generator[None, None, DescribeLogDirsResponse]:
        """List every directory of every storage."""
        found = yield from self._topics_by_dir(request)
        results = [
            _describe(log_dir, found.get(log_dir.path, []), self._is_cordoned(log_dir.path))
            for engine in self._replicas.engines.values()
            for log_dir in engine.log_dirs()
        ]
        return DescribeLogDirsResponse(results=results)

    def _topics_by_dir(
        self, request: DescribeLogDirsRequest
    ) -> Generator[None, None, dict[str, list[DescribeLogDirsTopic]]]:
        """Return the wanted topics of each directory; what changes meanwhile is told as it is when its turn comes."""
        wanted = None if request.topics is None else {topic.topic: set(topic.partitions) for topic in request.topics}
        found: dict[str, list[DescribeLogDirsTopic]] = {}
        for topic in list(self._replicas.topics.values()):
            yield
            if wanted is not None and topic.name not in wanted:
                continue
            by_dir: dict[str, list[DescribeLogDirsPartition]] = {}
            for index, replica in list(topic.partitions.items()):
                yield
                if replica.offline_reason is not None or (wanted is not None and index not in wanted[topic.name]):
                    continue
                part = DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=replica.log.size_bytes,
                    offset_lag=max(0, replica.high_watermark - replica.log.log_end_offset),
                )
                by_dir.setdefault(replica.log.log_dir, []).append(part)
                if replica.future is not None:
                    by_dir.setdefault(replica.future.log_dir, []).append(_future_of(index, replica, replica.future))
            for path, parts in by_dir.items():
                found.setdefault(path, []).append(DescribeLogDirsTopic(name=topic.name, partitions=parts))
        return found

    def error_response(
        self, request: DescribeLogDirsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response whose top-level error is this."""
        return DescribeLogDirsResponse(error_code=code)


def _future_of(index: int, replica: Replica, future: FutureLog) -> DescribeLogDirsPartition:
    """Return the copy of a log that is being moved."""
    return DescribeLogDirsPartition(
        partition_index=index,
        partition_size=future.move.copied_bytes,
        offset_lag=max(0, replica.log.log_end_offset - future.move.copied_offset),
        is_future_key=True,
    )


def _describe(log_dir: LogDirInfo, topics: list[DescribeLogDirsTopic], is_cordoned: bool) -> DescribeLogDirsResult:
    if log_dir.error:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=log_dir.path)
    return DescribeLogDirsResult(
        log_dir=log_dir.path,
        topics=topics,
        total_bytes=log_dir.total_bytes,
        usable_bytes=log_dir.usable_bytes,
        is_cordoned=is_cordoned,
    )
