"""The workers of `examples/retry`, each with an unmodified client: what fails comes back, and dies in the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.cli import main

from ..waiting import until
from .clients import MissingClientError, import_or_skip, java_driver, kafkajs_driver, skip_or_fail
from .records import PRODUCE, create_topic, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver

pytestmark = pytest.mark.interop

EXAMPLES = Path(__file__).parents[2] / "examples" / "retry"
GROUP = "billing"
FAILURES = (0, 1, 9, 2)
"""How often each record fails; two attempts are given. The worker ends when the last is done."""


def confluent_worker() -> tuple[list[str], dict[str, str]]:
    import_or_skip("confluent_kafka")
    return [sys.executable, str(EXAMPLES / "retry_worker.py")], {}


def java_worker() -> tuple[list[str], dict[str, str]]:
    *java, _options, jars, _program = java_driver("4.3.1")()
    return [java[0], "-cp", jars, str(EXAMPLES / "RetryWorker.java")], {}


def kafkajs_worker() -> tuple[list[str], dict[str, str]]:
    node, driver = kafkajs_driver()
    return [node, str(EXAMPLES / "retry_worker.js")], {"NODE_PATH": str(Path(driver).parent / "node_modules")}


def made_ready(worker: Callable[[], tuple[list[str], dict[str, str]]]) -> tuple[list[str], dict[str, str]]:
    try:
        return worker()
    except MissingClientError as missing:
        reason = f"needs {missing}"
    skip_or_fail(reason)
    raise AssertionError(reason)


@pytest.mark.parametrize("worker", [confluent_worker, java_worker, kafkajs_worker])
def test_a_worker_is_given_back_what_it_fails(
    worker: Callable[[], tuple[list[str], dict[str, str]]],
    address: str,
    topic: str,
    driver_of: Callable[[str], Driver],
    capsys: pytest.CaptureFixture[str],
) -> None:
    command, variables = made_ready(worker)
    retry, letters = f"{topic}.{GROUP}.retry", f"{topic}.{GROUP}.dlq"
    create_topic(address, topic)
    create_topic(address, letters, odradek_retry_dead_letters_of=retry)
    create_topic(
        address,
        retry,
        odradek_retry_topic=topic,
        odradek_retry_group=GROUP,
        odradek_retry_levels="100ms,200ms",
        odradek_retry_attempts="2",
    )
    failing = [record(number, b"%d" % count, b"key") for number, count in enumerate(FAILURES)]
    driver_of("aiokafka").do("produce", topic=topic, records=failing, **PRODUCE)

    done = subprocess.run(
        [*command, address, topic, GROUP, "3"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    def listed() -> list[dict[str, object]]:
        assert main(["dlq", "list", topic, "--group", GROUP, "--json", "--bootstrap", address]) == 0
        found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
        return found

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "done 0 attempt 0", "done 1 attempt 1", "done 2 attempt 2"]
    until(lambda: bool(listed()))
    (letter,) = listed()
    assert (letter["topic"], letter["value"], letter["attempts"]) == (topic, "9", 2)
    assert letter["reason"] == "no answer at attempt 2"
