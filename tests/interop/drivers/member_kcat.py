"""A group member of kcat: `kcat -G`, whose words are told as the others tell theirs.

It commits by itself, a little later than it prints: who takes over from one that died may read some records again.
"""

from __future__ import annotations

import ctypes
import re
import signal
import subprocess
import threading
from typing import IO

from .member_lines import HEARTBEAT_MS, Member

PARENT_DEATH = 1
"""PR_SET_PDEATHSIG of prctl(2): who is killed takes kcat along."""

REBALANCED = re.compile(r"% Group .* rebalanced.*(assign|revoke)\w*( of \d+ partition.*)?: (?P<partitions>.*)")
PARTITION = re.compile(r"\[(\d+)\]")


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies."""
    ctypes.CDLL(None).prctl(PARENT_DEATH, signal.SIGKILL)


def tell_ownership(member: Member, said: IO[str]) -> None:
    """Tell what kcat owns, whenever it says that this changed."""
    owned: set[int] = set()
    for line in said:
        found = REBALANCED.search(line)
        if found is not None:
            partitions = {int(number) for number in PARTITION.findall(found["partitions"])}
            # A cooperative one says what is added; an eager one has had everything revoked before.
            owned = owned | partitions if found[1] == "assign" else owned - partitions
            member.owns(owned)


def leave_when_told(member: Member, kcat: subprocess.Popen[str]) -> None:
    """Have kcat end, which commits and leaves the group."""
    member.is_leaving.wait()
    kcat.terminate()


def main() -> None:
    """Read until told to leave."""
    member = Member()
    options = member.options
    properties = {
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 100,
        "partition.assignment.strategy": options.assignor,
        "session.timeout.ms": options.session,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "reconnect.backoff.max.ms": 500,
        **({"group.instance.id": options.instance} if options.instance else {}),
    }
    words = ["kcat", "-b", options.bootstrap, "-G", options.group, "-E", "-u", "-f", "%p %o %s\n"]
    words += [word for key, value in properties.items() for word in ("-X", f"{key}={value}")]
    with subprocess.Popen(
        [*words, options.topic],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    ) as kcat:
        assert kcat.stdout is not None
        assert kcat.stderr is not None
        threading.Thread(target=tell_ownership, args=(member, kcat.stderr), daemon=True).start()
        threading.Thread(target=leave_when_told, args=(member, kcat), daemon=True).start()
        for line in kcat.stdout:
            partition, offset, value = line.split()
            member.read([(int(partition), int(offset), value.encode())])
    member.left()


if __name__ == "__main__":
    main()
