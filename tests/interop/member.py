"""Group members, each a client in a process of its own, and what they told: see `drivers/member_lines.py`."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from typing import TYPE_CHECKING, Final

from .driver import ROOT, client_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

LIMIT_S: Final = 60.0


class Members:
    """The members of one group. Life: made, `start` and `end` as often as wanted, `close`.

    All of them are watched under one lock, so that `wait_until` sees them together.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changed = threading.Condition()
        self._members: dict[str, Member] = {}
        self.records: list[tuple[int, int, str]] = []

    def start(self, name: str, command: Sequence[str], *options: str) -> Member:
        """Start a member; `name` tells it from the others, and may be that of one that has ended."""
        if name in self._members:
            self._members[name].close_pipes()
        log = self._folder / f"{name}.log"
        with log.open("ab") as errors:
            process = subprocess.Popen(
                [*command, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=client_environment(),
                cwd=ROOT,
            )
        member = self._members[name] = Member(name, process, log)
        threading.Thread(target=self._listen, args=(member,), daemon=True).start()
        return member

    def _listen(self, member: Member) -> None:
        assert member.process.stdout is not None
        for line in member.process.stdout:
            event = json.loads(line)
            with self._changed:
                if event["event"] == "assigned":
                    member.owned = set(event["partitions"])
                    member.history.append(member.owned)
                elif event["event"] == "records":
                    self.records += [(partition, offset, value) for partition, offset, value in event["records"]]
                    member.count += len(event["records"])
                self._changed.notify_all()
        with self._changed:
            member.is_over = True
            self._changed.notify_all()

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds, as long as no member ended by itself."""

        def is_settled() -> bool:
            return holds() or any(member.is_over and not member.was_ended for member in self._members.values())

        with self._changed:
            in_time = self._changed.wait_for(is_settled, LIMIT_S)

        assert in_time, f"{what}: {self._told()}"
        assert holds(), f"{what}, but a member ended: {self._told()}"

    def _told(self) -> str:
        parts = [f"{len(self.records)} records"]
        for member in self._members.values():
            said = member.log.read_text(errors="replace")[-1500:]
            parts.append(f"{member.name}: {'ended, ' if member.is_over else ''}owned {member.history}; {said}")
        return "\n".join(parts)

    def owned(self) -> list[set[int | str]]:
        """Return what each member owns that runs."""
        return [member.owned for member in self._members.values() if not member.was_ended]

    def owned_by(self, name: str) -> set[int | str]:
        """Return what a member owns."""
        return self._members[name].owned

    def history_of(self, name: str) -> list[set[int | str]]:
        """Return what a member owned, one after the other."""
        return list(self._members[name].history)

    def leave(self, name: str) -> None:
        """Have a member leave, and wait until it has."""
        member = self._members[name]
        member.was_ended = True
        assert member.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            member.process.stdin.close()
        member.process.wait(LIMIT_S)

    def kill(self, name: str) -> None:
        """End a member without a chance to say goodbye."""
        member = self._members[name]
        member.was_ended = True
        member.process.kill()
        member.process.wait()

    def close(self) -> None:
        """End all that still run."""
        for name, member in self._members.items():
            if member.process.poll() is None:
                self.kill(name)
            member.close_pipes()


class Member:
    """One member: its process, what it owns, and what it owned before."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log
        self.owned: set[int | str] = set()
        self.history: list[set[int | str]] = []
        self.count = 0
        self.is_over = False
        self.was_ended = False

    def close_pipes(self) -> None:
        """Close what led to the process, which has ended."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@contextlib.contextmanager
def members_in(folder: Path) -> Iterator[Members]:
    """Run members; they are ended whatever happens."""
    members = Members(folder)
    try:
        yield members
    finally:
        members.close()
