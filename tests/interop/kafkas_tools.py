"""Apache Kafka's own command line tools, run one after another in one JVM: what each must print, how it must end."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import attrs

from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .driver import Driver

PACKAGES: Final = {
    "ConfigCommand": "kafka.admin.",
    "ConsoleConsumer": "org.apache.kafka.tools.consumer.",
    "ConsumerGroupCommand": "org.apache.kafka.tools.consumer.group.",
    "ReassignPartitionsCommand": "org.apache.kafka.tools.reassign.",
}
"""Where the tools are that are not in the package of most."""

MOST: Final = "org.apache.kafka.tools."


@attrs.frozen
class Step:
    """One run of a tool.

    Attributes:
        words: Its command line, but for the address; `{topic}` and `{folder}` are filled in.
        says: What it must print.
        status: What it must end with.
        stdin: What it reads.
        is_awaited: Whether it is run again until it says and ends so: what was begun before takes its time.
    """

    words: str
    says: Sequence[str] = ()
    status: int = 0
    stdin: str = ""
    is_awaited: bool = False


def run(tools: Driver, step: Step, address: str, **names: Any) -> None:
    """Run a tool, and see that it ends and says as it must."""
    if step.is_awaited:
        until(lambda: not _run_once(tools, step, address, **names))
        return
    wrong = _run_once(tools, step, address, **names)
    assert not wrong, wrong


def _run_once(tools: Driver, step: Step, address: str, **names: Any) -> str:
    """Return what was wrong about one run."""
    name, *words = shlex.split(step.words.format(**names))
    where = 1 if name == "ClusterTool" else 0  # behind the command of those that want it there
    arguments = [*words[:where], "--bootstrap-server", address, *words[where:]]

    done = tools.do("run", tool=PACKAGES.get(name, MOST) + name, arguments=arguments, input=step.stdin)

    printed = done["out"] + done["err"]
    said = " ".join(printed.split())
    missing = [text for each in step.says if (text := each.format(**names)) not in printed and text not in said]
    if (done["status"], missing) == (step.status, []):
        return ""
    return f"{step.words}\nended with {done['status']}, and did not say {missing}:\n{printed[-3000:]}"
