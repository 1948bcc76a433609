"""The examples of the client run, and do what they say."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import trio

from odradek.testing.running_broker import running_broker
from tests.interop.clients import import_or_skip

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    quick = {"group.initial.rebalance.delay.ms": 0, "group.consumer.heartbeat.interval.ms": 100}
    limits = {"group.consumer.min.heartbeat.interval.ms": 50, "group.consumer.assignment.interval.ms": 0}
    with running_broker({**quick, **limits}) as broker:
        yield broker.bootstrap


def test_integer_keys_go_to_the_partition_of_their_number(bootstrap: str) -> None:
    example = load("custom_partitioner")

    chosen = trio.run(example.main, bootstrap)

    assert {"0": 0, "1": 1, "2": 2, "3": 0, "4": 1, "a word": chosen["a word"]} == chosen


def test_avro_comes_back_as_it_was_sent(bootstrap: str) -> None:
    import_or_skip("fastavro", "pip install --group test")

    read = load("avro_serializer").main(bootstrap)

    assert [value["station"] for value in read] == ["Prag", "Brocken"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_every_record_once_while_members_come_and_go(bootstrap: str, protocol: str) -> None:
    example = load("group_consumer")

    seen = trio.run(example.main, bootstrap, protocol)

    assert {str(number): 1 for number in range(example.RECORDS_COUNT)} == seen


def test_every_order_is_billed_once_though_the_biller_dies(bootstrap: str) -> None:
    example = load("exactly_once")

    bills = trio.run(example.main, bootstrap)

    assert [f"bill for order {number}" for number in range(example.ORDERS_COUNT)] == bills
