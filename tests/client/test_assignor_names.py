"""`partition.assignment.strategy`: names that plugins offer, Kafka's, objects, paths; and a cluster that is gone."""

from __future__ import annotations

import pytest

from odradek.client import ClientError, Consumer
from odradek.client.group.assignors import resolve_assignors
from odradek.kernel.errors import ConfigError
from odradek.plugins.assignors.range_assignor import RangeAssignor
from odradek.testing.running_broker import running_broker

from .group_cluster import FAST, QUICK, run

KAFKA = "org.apache.kafka.clients.consumer"


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ((), ["range", "cooperative-sticky"]),
        (("sticky", "roundrobin"), ["sticky", "roundrobin"]),
        ((f"{KAFKA}.CooperativeStickyAssignor", f"{KAFKA}.RangeAssignor"), ["cooperative-sticky", "range"]),
        ((RangeAssignor(),), ["range"]),
        (("odradek.plugins.assignors.range_assignor:RangeAssignor",), ["range"]),
    ],
)
def test_an_assignor_is_found_by_any_of_its_names(given: tuple[object, ...], names: list[str]) -> None:
    assert names == [assignor.name for assignor in resolve_assignors(given)]


@pytest.mark.parametrize(
    ("given", "part_of_the_error"),
    [
        (("fair",), "no installed plugin offers an assignor 'fair' (offered: "),
        (("range", RangeAssignor()), "names an assignor twice"),
        (("no.such:Assignor",), "cannot import"),
    ],
)
def test_what_is_no_assignor_is_refused(given: tuple[object, ...], part_of_the_error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_assignors(given)

    assert part_of_the_error in str(caught.value)


def test_a_consumer_whose_cluster_is_gone_says_so_and_ends_at_once() -> None:
    async def test() -> None:
        with running_broker(QUICK) as broker:
            consumer = Consumer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "group.id": "g",
                    "default.api.timeout.ms": 300,
                    "request.timeout.ms": 300,
                    **FAST,
                }
            )
            await consumer.__aenter__()
            consumer.assign([("t", 0)])
            await consumer.poll(timeout_ms=200)
        with pytest.raises(ClientError) as caught:
            await consumer.commit({("t", 0): 1}, timeout_ms=200)  # type: ignore[dict-item] # pairs will do
        with pytest.raises(ClientError, match="no committed offsets within 300 ms"):
            await consumer.committed([("t", 0)])
        await consumer.__aexit__(None, None, None)

        assert caught.value.retriable

    run(test)
