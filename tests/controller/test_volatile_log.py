"""The metadata partition of a broker without a storage: as the one on a disk, but for what is left of it."""

from __future__ import annotations

import trio

from odradek.kernel.controller.local_log import FIRST_EPOCH, LoggedRecord, ReplicatedLog
from odradek.kernel.controller.volatile_log import VolatileLog
from odradek.kernel.machine.turnstile import run_at_once


def test_what_is_appended_is_there_to_be_replayed() -> None:
    log: ReplicatedLog = VolatileLog()

    assert run_at_once(log.append_in_steps([b"a", b"b"], 0)) == 0
    assert run_at_once(log.append_in_steps([b"c"], 0)) == 2

    trio.run(log.commit)
    log.drop_below(2)

    assert (log.directory, log.start_offset, log.end_offset, log.leader_epoch) == (None, 0, 3, FIRST_EPOCH)
    assert list(log.records(1)) == [LoggedRecord(1, FIRST_EPOCH, b"b"), LoggedRecord(2, FIRST_EPOCH, b"c")]
    assert repr(log) == "VolatileLog([0, 3))"
