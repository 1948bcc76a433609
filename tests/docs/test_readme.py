"""The README's examples do what it says, against a broker on another port than the one it names."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.testing.running_broker import RunningBroker, running_broker
from tests.interop.clients import import_or_skip
from tests.waiting import PATIENCE_S

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
ADDRESS = "127.0.0.1:9092"
DATA_DIR = "~/.local/share/odradek"


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


def block_with(text: str, language: str) -> str:
    """Return the README's only block of a language that holds a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if text in block]
    return str(block)


def for_broker(block: str, broker: RunningBroker) -> str:
    """Return a block as it is for a broker elsewhere."""
    return block.replace(ADDRESS, broker.bootstrap).replace(DATA_DIR, shlex.quote(str(broker.data_dir)))


@pytest.mark.interop
def test_the_client_gets_back_what_it_produced(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    import_or_skip("confluent_kafka")
    exec(for_broker(block_with("confluent_kafka", "python"), broker), {})
    lines = capsys.readouterr().out.splitlines()

    assert [f"{n} b'customer-{n % 3}' b'order {n}'" for n in range(10)] == lines


def run_commands(block: str, broker: RunningBroker) -> subprocess.CompletedProcess[str]:
    """Run a block of commands as a shell would, those of ours against the broker."""
    script = re.sub(
        r"^(.*odradek (?:produce|consume|topics|groups) .*)$",
        rf"\1 -b {broker.bootstrap}",
        for_broker(block, broker),
        flags=re.MULTILINE,
    )
    start = f'odradek() {{ {shlex.quote(sys.executable)} -m odradek "$@"; }}\n'
    return subprocess.run(
        ["sh", "-ec", start + script], capture_output=True, text=True, check=False, timeout=3 * PATIENCE_S
    )


def test_the_commands_that_show_a_group_work(broker: RunningBroker) -> None:
    create, follow, produce, describe = block_with("--group workers", "sh").splitlines()
    consume = follow.replace(" --follow", "")  # and after the records are there, so that it ends
    done = run_commands("\n".join((create, produce, consume, describe)), broker)
    lines = done.stdout.splitlines()

    assert (done.returncode, done.stderr) == (0, "")
    assert {f"task {number}" for number in range(1, 101)} <= set(lines)
    assert "0 members, 4 partitions, 0 records behind" in lines


def test_the_commands_for_what_is_here_already_work(broker: RunningBroker) -> None:
    done = run_commands(block_with("odradek produce orders", "sh"), broker)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("customer-1:three apples\n") == 2
    assert re.search(r"^packing +Empty .*\n0 members, 1 partition, 0 records behind$", done.stdout, re.MULTILINE)
    assert "leader" in done.stdout
    assert "base_offset=0" in done.stdout


def test_the_fixture_is_given_and_says_where_the_broker_is(broker: RunningBroker) -> None:
    addresses: list[str] = []
    names: dict[str, Any] = {"send_order": lambda *, bootstrap_servers: addresses.append(bootstrap_servers)}
    exec(block_with("test_an_order_is_sent", "python"), names)
    names["test_an_order_is_sent"](broker)

    assert [broker.bootstrap] == addresses
