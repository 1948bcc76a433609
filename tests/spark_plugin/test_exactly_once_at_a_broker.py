"""The same against a broker of ours: the process dies at a request, the next run begins, each row is there once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.testing.running_broker import running_broker
from tests.spark_plugin.exactly_once_life import Life
from tests.spark_plugin.topic_kit import Kit, open_kit


@pytest.fixture(scope="module")
def kit() -> Iterator[Kit]:
    with running_broker({"transaction.state.log.replication.factor": 1}) as broker, open_kit(broker.bootstrap) as kit:
        yield kit


def test_a_query_that_lives_on_asks_little_of_coordinators(kit: Kit) -> None:
    life = Life(kit.bootstrap, kit.new_topic(2))
    life.run_to_the_end(None, is_done=False)

    assert sorted(row[1] for row in kit.consumed(life.topic, is_read_committed=True)) == life.expected
    assert life.runs_count == 1
    assert life.requests_count < 60


@pytest.mark.parametrize("is_done", [False, True])
def test_a_death_at_any_request_loses_and_doubles_nothing(kit: Kit, is_done: bool) -> None:
    for at in range(1 + 2 * is_done, 46, 5):
        life = Life(kit.bootstrap, kit.new_topic(2))
        life.run_to_the_end(at, is_done=is_done)
        found = sorted(row[1] for row in kit.consumed(life.topic, is_read_committed=True))

        assert found == life.expected, f"died at request {at}"
