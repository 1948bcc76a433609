"""The listener that commits to a group, called as Spark calls it, without a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import attrs
import pytest

pytest.importorskip("pyspark", reason="the listener is a class of pyspark's: pip install '.[spark]'")

from odradek.client import BlockingAdmin, NewTopic
from odradek.spark_plugin.lag import GroupOffsetListener
from odradek.testing.running_broker import running_broker

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryProgressEvent

    from odradek.spark_plugin.progress import QueryLag


@attrs.define
class Event:
    """As much of Spark's event as the listener looks at."""

    progress: dict[str, Any]


def test_progress_is_committed_and_told() -> None:
    source = {"endOffset": '{"orders": {"0": 7}}', "latestOffset": '{"orders": {"0": 9}}'}
    progress = cast("QueryProgressEvent", Event({"id": "an id", "name": "bills", "batchId": 0, "sources": [source]}))
    told: list[QueryLag] = []
    with running_broker() as broker, BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
        admin.create_topic(NewTopic("orders", 1, 1))
        options = {"kafka.bootstrap.servers": broker.bootstrap}
        listener = GroupOffsetListener("billing", options, on_lag=told.append)
        listener.onQueryStarted(cast("Any", None))
        listener.onQueryProgress(progress)
        listener.onQueryIdle(cast("Any", None))
        listener.onQueryTerminated(cast("Any", None))
        listener.close()
        (found,) = admin.list_group_offsets("billing").values()

    assert found is not None
    assert found.offset == 7
    assert list(listener.lags().values()) == told


def test_events_without_topics_are_passed_over() -> None:
    listener = GroupOffsetListener(
        "billing", {"kafka.bootstrap.servers": "127.0.0.1:1"}, on_lag=lambda lag: pytest.fail(str(lag))
    )
    event = cast("QueryProgressEvent", Event({"id": "an id", "name": None, "batchId": 0, "sources": []}))
    listener.onQueryProgress(event)

    assert not listener.lags()
