"""A broker that is killed at random while a tiered topic's transactions go to the store: neither tier shows what was
aborted, nor lacks what was committed.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import trio

from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from odradek.kernel.wire.messages.api_65_describe_transactions import DescribeTransactionsRequest
from tests.waiting import until

from .test_tiered_topics import EARLIEST, EARLIEST_LOCAL, create, offset, settings
from .test_transaction_kills import Lives, Producer, ask, state_code, values_of

PADDING = "." * 100
"""Some two batches are a segment."""


def carry_out(lives: Lives, producer: Producer, values: list[str], is_commit: bool, chance: random.Random) -> None:
    """Do the steps of one transaction, with kills between them."""
    producer.init(lives.client)
    for value in values:
        if chance.random() < 0.2:
            lives.kill()
        producer.send(lives.client, value)
    if chance.random() < 0.5:
        producer.end_unanswered(lives.client, is_commit)
        lives.kill()
    producer.end(lives.client, is_commit)


@pytest.mark.parametrize(
    ("seed", "transactions"),
    [(25, 4), *(pytest.param(seed, 20, marks=pytest.mark.sweep) for seed in range(2, 12))],
)
def test_killed_at_random_both_tiers_have_what_was_committed_and_nothing_else(
    tmp_path: Path, seed: int, transactions: int
) -> None:
    chance = random.Random(seed)
    options = [f"{key}={value}" for key, value in settings(tmp_path).items() if key != "log.retention.ms"]
    lives = Lives(tmp_path / "data", *options)
    producer = Producer(by_version_2=seed % 2 == 0)
    committed: list[str] = []
    try:
        create(lives.client, remote_storage_enable="true")
        asked = FindCoordinatorRequest(key="t", key_type=1)
        ask(lives.client, asked, 3, lambda answer: answer.error_code)
        for number in range(transactions):
            values = [f"{number}-{place}{PADDING}" for place in range(chance.randrange(1, 6))]
            is_commit = chance.random() < 0.6
            carry_out(lives, producer, values, is_commit, chance)
            committed += values if is_commit else []
        ask(lives.client, DescribeTransactionsRequest(transactional_ids=["t"]), 0, state_code)

        until(lambda: offset(lives.client, EARLIEST_LOCAL) > len(committed))
        assert offset(lives.client, EARLIEST) == 0
        assert trio.run(values_of, lives.broker.address) == committed
        lives.kill()
        assert trio.run(values_of, lives.broker.address) == committed
    finally:
        lives.close()
