"""Three machines in namespaces of the network: each has an address and a cable of its own, which can be pulled.

Linux, and root. The tests, and their clients, are where the switch is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

COUNT = 3


def can_have_namespaces() -> bool:
    """Say whether this process may make them."""
    if sys.platform != "linux" or shutil.which("ip") is None or os.geteuid() != 0:
        return False
    name = f"odradek-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if made.returncode == 0:
        _ip("netns", "del", name)
    return made.returncode == 0


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Machine:
    """One machine.

    Attributes:
        where: The command that runs another one there.
        address: Its own.
        options: Where its broker listens, and finds the controller, which is on the first.
    """

    def __init__(self, name: str, cable: str, address: str, controller: str | None) -> None:
        self.where: Sequence[str] = ("ip", "netns", "exec", name)
        self.address = address
        own = f"{address}:9093"
        listeners = f"PLAINTEXT://{address}:9092"
        self.controller = controller or own
        self.options = [
            f"listeners={listeners}" if controller else f"listeners={listeners},CONTROLLER://{own}",
            f"controller.quorum.voters=1@{self.controller}",
        ]
        self._cable = cable

    def cut(self) -> None:
        """Pull its cable: nothing comes and nothing goes, and nobody is told."""
        _ip("link", "set", self._cable, "down")

    def heal(self) -> None:
        """Plug it in again."""
        _ip("link", "set", self._cable, "up")


@contextmanager
def machines() -> Iterator[Mapping[int, Machine]]:
    """Three machines at one switch, by their numbers; gone with the block, with what is left of them."""
    own = os.getpid() % 10_000
    network = f"10.{200 + own // 250 % 50}.{own % 250}"
    switch = f"odr{own}"
    found: dict[int, Machine] = {}
    with ExitStack() as undo:
        _ip("link", "add", switch, "type", "bridge")
        undo.callback(_ip, "link", "del", switch)
        _ip("addr", "add", f"{network}.254/24", "dev", switch)
        _ip("link", "set", switch, "up")
        for number in range(1, COUNT + 1):
            name, cable, address = f"odradek-{own}-{number}", f"odr{own}c{number}", f"{network}.{number}"
            _ip("netns", "add", name)
            undo.callback(_ip, "netns", "del", name)
            _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", cable, "master", switch, "up")
            for words in (
                ("addr", "add", f"{address}/24", "dev", "eth0"),
                ("link", "set", "lo", "up"),
                ("link", "set", "eth0", "up"),
            ):
                _ip("-n", name, *words)
            found[number] = Machine(name, cable, address, found[1].controller if found else None)
        yield found
