"""Pure core: DescribeLogDirs, API key 35, versions 1-5."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
]


class DescribableLogDirTopic(Message):
    """An item of `DescribeLogDirsRequest.topics`."""

    topic: str = f.string()
    partitions: list[int] = f.int32s()


class DescribeLogDirsRequest(Message, key=35, versions="1-5", flexible="2+"):
    """The request."""

    topics: list[DescribableLogDirTopic] | None = f.array(DescribableLogDirTopic, nullable="1+")


class DescribeLogDirsPartition(Message):
    """An item of `DescribeLogDirsTopic.partitions`."""

    partition_index: int = f.int32()
    partition_size: int = f.int64()
    offset_lag: int = f.int64()
    is_future_key: bool = f.boolean()


class DescribeLogDirsTopic(Message):
    """An item of `DescribeLogDirsResult.topics`."""

    name: str = f.string()
    partitions: list[DescribeLogDirsPartition] = f.array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Message):
    """An item of `DescribeLogDirsResponse.results`."""

    error_code: int = f.int16()
    log_dir: str = f.string()
    topics: list[DescribeLogDirsTopic] = f.array(DescribeLogDirsTopic)
    total_bytes: int = f.int64("4+", default=-1, ignorable=True)
    usable_bytes: int = f.int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = f.boolean("5+", ignorable=True)


class DescribeLogDirsResponse(Message, key=35, versions="1-5", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = f.array(DescribeLogDirsResult)
