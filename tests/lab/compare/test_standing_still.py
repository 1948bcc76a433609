"""Processes of a compared cluster that stand still, and go on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from odradek.lab.compare.broker_process import BrokerFolder
from odradek.lab.compare.cluster_processes import Node
from tests.waiting import until_async

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="only Linux tells whether a process stands"
)


def stands(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def with_node(tmp_path: Path, body: Callable[[Node, int], Awaitable[None]]) -> None:
    async def run() -> None:
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        process = await trio.lowlevel.open_process(command, stdout=subprocess.DEVNULL)
        node = Node(1, BrokerFolder(tmp_path), {}, None)
        node._process = process
        try:
            await body(node, process.pid)
        finally:
            process.kill()
            await process.wait()

    trio.run(run)


def test_a_node_stands_still_until_it_is_told_to_go_on(tmp_path: Path) -> None:
    async def body(node: Node, pid: int) -> None:
        node.pause()
        await until_async(lambda: stands(pid))
        node.resume()
        await until_async(lambda: not stands(pid))

    with_node(tmp_path, body)


def test_a_node_that_stutters_stands_still_again_and_again_and_goes_on_in_the_end(tmp_path: Path) -> None:
    async def body(node: Node, pid: int) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.stutter)
            for _ in range(2):
                await until_async(lambda: stands(pid))
                await until_async(lambda: not stands(pid))
            await until_async(lambda: stands(pid))
            nursery.cancel_scope.cancel()
        await until_async(lambda: not stands(pid))

    with_node(tmp_path, body)
