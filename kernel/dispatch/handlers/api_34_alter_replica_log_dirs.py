"""Shell: AlterReplicaLogDirs (key 34): moves replicas of this broker to another of its log directories.

As in Kafka the answer comes when the moves are begun; a replica serves while it is copied, and DescribeLogDirs tells
how far its copy is. For the moment in which the copy takes the log's place clients get KAFKA_STORAGE_ERROR, which
they retry.

*Source:* KIP-113, KIP-1066 (none moves into a cordoned one); error codes compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode, KafkaError, StorageError
from ...wire.messages.api_34_alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...partitions.log_moves import LogMoves
    from ...partitions.replicas import Replicas
    from ...wire.messages.api_34_alter_replica_log_dirs import AlterReplicaLogDirsRequest

log = logging.getLogger(__name__)

_NAME_LENGTH_MAX: Final = 255 - len(f".{'0' * 32}-future")
"""How long the name of a log may be so that its copy's is one that file systems take; Kafka refuses longer ones."""


class AlterReplicaLogDirsHandler:
    """Answers AlterReplicaLogDirs. Owned by the reactor's task."""

    api_key = 34
    pieces = ListPieces("dirs.topics.partitions", answers=["results.partitions"])

    def __init__(self, *, replicas: Replicas, moves: LogMoves, is_cordoned: Callable[[str], bool]) -> None:
        self._replicas = replicas
        self._is_cordoned = is_cordoned
        self._moves = moves

    def handle(self, request: AlterReplicaLogDirsRequest, context: RequestContext) -> Answer:
        """Begin what is asked for."""
        codes: dict[str, dict[int, ErrorCode]] = {}
        for log_dir in request.dirs:
            for topic in log_dir.topics:
                for index in topic.partitions:
                    codes.setdefault(topic.name, {})[index] = self._alter(log_dir.path, topic.name, index)
        return _response(codes)

    def _alter(self, path: str, topic: str, index: int) -> ErrorCode:
        if len(f"{topic}-{index}") > _NAME_LENGTH_MAX:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        try:
            self._check_dir(path)
            self._moves.ask(self._replicas.get(topic, index), path)
        except KafkaError as error:
            return error.code
        except StorageError as error:
            log.error("%s-%d cannot move to %s: %s", topic, index, path, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def _check_dir(self, path: str) -> None:
        """Check that this broker has a working log directory of exactly this path, and that it is not cordoned."""
        for engine in self._replicas.engines.values():
            for log_dir in engine.log_dirs():
                if log_dir.path == path:
                    if self._is_cordoned(path):
                        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
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
