"""The example of a retry policy: it passes the kit, scatters within its span, and a topic may name it."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples.jitter_retry_policy import ATTEMPTS, BASE, LONGEST, make_policy

from odradek.cli import main
from odradek.kernel.api import RetryPolicyFactory
from odradek.testing.contracts.retry_policy import RetryPolicyContract
from odradek.testing.running_broker import running_broker

CONFIG = """
[plugins]
enable = ["*", "examples.jitter_retry_policy"]
"""


class TestJitter(RetryPolicyContract):
    def make_factory(self) -> RetryPolicyFactory:
        return make_policy


@pytest.mark.parametrize(
    ("attempt", "drawn", "expected"), [(1, 0.5, 50), (2, 0.5, 100), (4, 0.999, 799), (5, 0.5, 500), (99, 0.5, 500)]
)
def test_the_span_doubles_up_to_its_limit_and_the_wait_is_drawn_from_it(
    attempt: int, drawn: float, expected: int
) -> None:
    policy = make_policy({BASE: 100, LONGEST: 1_000, ATTEMPTS: 100})

    assert policy.delay_ms(attempt, drawn) == expected


def test_a_retry_topic_may_name_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text(CONFIG)
    with running_broker(config=config) as broker:
        for words in (
            ("topics", "create", "orders"),
            ("retry", "enable", "orders", "--group", "billing"),
            (
                "topics",
                "alter",
                "orders.billing.retry",
                "--set",
                "odradek.retry.policy=jitter",
                "--set",
                f"{ATTEMPTS}=3",
            ),
            ("configs", "describe", "topic", "orders.billing.retry"),
        ):
            assert main([*words, "--bootstrap", broker.bootstrap]) == 0
    told = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]

    assert ["odradek.retry.policy", "jitter"] in told
