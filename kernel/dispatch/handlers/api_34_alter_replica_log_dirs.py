"""Shell: AlterReplicaLogDirs (key 34): moves replicas of this broker to another of its log directories.

As in Kafka a replica serves while it is copied, and DescribeLogDirs tells how far its copy is. Kafka answers at once;
here the answer comes when it is done, and for the moment in which the copy takes the log's place clients get
KAFKA_STORAGE_ERROR, which they retry.

*Source:* KIP-113; error codes compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ...errors import ErrorCode, KafkaError, StorageError
from ...wire.messages.api_34_alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...partitions.replica_manager import ReplicaManager
    from ...wire.messages.api_34_alter_replica_log_dirs import AlterReplicaLogDirsRequest

log = logging.getLogger(__name__)


class AlterReplicaLogDirsHandler:
    """Answers AlterReplicaLogDirs. Its tasks run on the reactor's thread; one move at a time."""

    api_key = 34

    def __init__(
        self, *, replicas: ReplicaManager, limiter: trio.CapacityLimiter, on_moved: Callable[[], None]
    ) -> None:
        """Make the handler.

        Args:
            replicas: Whose logs are moved.
            limiter: For the worker threads that move files.
            on_moved: Called after a move: the controller is to know of it.
        """
        self._replicas = replicas
        self._limiter = limiter
        self._on_moved = on_moved
        self._move_lock = trio.Lock()

    async def handle_async(self, request: AlterReplicaLogDirsRequest, context: RequestContext) -> Answer:
        """Move what is asked for, one partition after another. If cancelled, a move under way is given up."""
        codes: dict[str, dict[int, ErrorCode]] = {}
        for log_dir in request.dirs:
            for topic in log_dir.topics:
                for index in topic.partitions:
                    codes.setdefault(topic.name, {})[index] = await self._alter(log_dir.path, topic.name, index)
        return _response(codes)

    async def _alter(self, path: str, topic: str, index: int) -> ErrorCode:
        try:
            self._check_dir(path)
            async with self._move_lock:
                replica = self._replicas.get(topic, index)
                if replica.offline_reason is not None:
                    return ErrorCode.KAFKA_STORAGE_ERROR
                if replica.log.log_dir != path:
                    await self._replicas.move(replica, path, self._limiter)
                    self._on_moved()
        except KafkaError as error:
            return error.code
        except StorageError as error:
            log.error("moving a log failed", extra={"partition": f"{topic}-{index}", "to": path, "reason": str(error)})
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def _check_dir(self, path: str) -> None:
        """Check that this broker has a working log directory of exactly this path."""
        for engine in self._replicas.engines.values():
            for log_dir in engine.log_dirs():
                if log_dir.path == path:
                    if log_dir.error:
                        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
                    return
        raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND)

    def error_response(
        self, request: AlterReplicaLogDirsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        codes: dict[str, dict[int, ErrorCode]] = {}
        for log_dir in request.dirs:
            for topic in log_dir.topics:
                codes.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, code))
        return _response(codes)


def _response(codes: dict[str, dict[int, ErrorCode]]) -> AlterReplicaLogDirsResponse:
    results = [
        AlterReplicaLogDirTopicResult(
            topic_name=topic,
            partitions=[
                AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                for index, code in by_partition.items()
            ],
        )
        for topic, by_partition in codes.items()
    ]
    return AlterReplicaLogDirsResponse(results=results)
