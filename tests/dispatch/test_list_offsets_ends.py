"""ListOffsets for the ends of partitions: what is told, and what has to be refused however often ends are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.kernel.contracts.api_handler import RequestContext
from odradek.kernel.dispatch.handlers.api_02_list_offsets import ListOffsetsHandler
from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.kernel.wire.special_timestamps import LATEST_TIMESTAMP
from tests.partitions.hosted import Hosted

DEBUGGING_REPLICA_ID = -2
EPOCH = 3
RECORDS = 5
COMMITTED = 2
"""So many come before a transaction that is open."""


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    """Give one partition that is led here, and one that is not."""
    found = Hosted(tmp_path)
    found.open("led", epoch=EPOCH)
    found.open("followed", leader=2, epoch=EPOCH)
    found.produce("led", 0, COMMITTED)
    found.produce("led", 0, RECORDS - COMMITTED, producer_id=6, txn=True)
    yield found
    found.lifecycle.close()


def ask(
    hosted: Hosted,
    topic: str = "led",
    *,
    epoch: int = -1,
    isolation: int = 0,
    version: int = 7,
    replica_id: int = -1,
    copies: int = 1,
) -> tuple[ErrorCode, int, int]:
    """Return what a partition's end is answered with: code, offset, leader epoch."""
    handler = ListOffsetsHandler(replicas=hosted.replicas, cold_timeout_ms=lambda: 30_000, threads=SystemThreads())
    part = ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIMESTAMP, current_leader_epoch=epoch)
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=topic, partitions=[part] * copies)],
    )
    answer: Any = handler.handle(request, cast("RequestContext", SimpleNamespace(api_version=version)))
    ((found,),) = [each.partitions for each in answer.topics]
    return error_code(found.error_code), found.offset, found.leader_epoch


def test_the_end_is_the_high_watermark_or_where_the_first_open_transaction_begins(hosted: Hosted) -> None:
    assert ask(hosted) == (ErrorCode.NONE, RECORDS, EPOCH)
    assert ask(hosted, epoch=EPOCH) == (ErrorCode.NONE, RECORDS, EPOCH)
    assert ask(hosted, isolation=1) == (ErrorCode.NONE, COMMITTED, EPOCH)


def test_versions_that_know_no_epoch_are_told_none(hosted: Hosted) -> None:
    assert ask(hosted, version=3) == (ErrorCode.NONE, RECORDS, -1)
    assert ask(hosted, version=4) == (ErrorCode.NONE, RECORDS, EPOCH)


def test_who_debugs_sees_what_is_appended(hosted: Hosted) -> None:
    replica = hosted.replicas.get("led", 0)
    replica.high_watermark = 1

    assert ask(hosted) == (ErrorCode.NONE, 1, EPOCH)
    assert ask(hosted, replica_id=DEBUGGING_REPLICA_ID) == (ErrorCode.NONE, RECORDS, EPOCH)


def fails(replica: Replica) -> None:
    replica.offline_reason = "its disk is gone"


def steps_down(replica: Replica) -> None:
    replica.is_leader = False


def has_just_begun(replica: Replica) -> None:
    replica.epoch_begin = RECORDS + 1


@pytest.mark.parametrize(
    ("happens", "asked", "code"),
    [
        pytest.param(None, {"epoch": EPOCH - 1}, ErrorCode.FENCED_LEADER_EPOCH, id="an older epoch"),
        pytest.param(None, {"epoch": EPOCH + 1}, ErrorCode.UNKNOWN_LEADER_EPOCH, id="a newer epoch"),
        pytest.param(None, {"copies": 2}, ErrorCode.INVALID_REQUEST, id="asked for twice"),
        pytest.param(None, {"topic": "followed"}, ErrorCode.NOT_LEADER_OR_FOLLOWER, id="led elsewhere"),
        pytest.param(None, {"topic": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="not there"),
        pytest.param(fails, {}, ErrorCode.KAFKA_STORAGE_ERROR, id="offline"),
        pytest.param(steps_down, {}, ErrorCode.NOT_LEADER_OR_FOLLOWER, id="deposed"),
        pytest.param(has_just_begun, {}, ErrorCode.OFFSET_NOT_AVAILABLE, id="a leader that knows less than was seen"),
        pytest.param(has_just_begun, {"version": 4}, ErrorCode.LEADER_NOT_AVAILABLE, id="the same, to an older client"),
    ],
)
def test_an_end_is_not_told(
    hosted: Hosted, happens: Callable[[Replica], None] | None, asked: dict[str, Any], code: ErrorCode
) -> None:
    if happens is not None:
        happens(hosted.replicas.get("led", 0))

    assert ask(hosted, **asked) == (code, -1, -1)
