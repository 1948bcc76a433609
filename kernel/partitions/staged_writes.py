"""Shell: what a turn of the reactor staged is written at its end, and counts once it is where its topic wants it.

    an append           stages a batch, `stage` notes its replica                             (many times a turn)
    the turn's end      `write_staged`: one gathered write a replica, then its waiters wake; of very many first batches
                        the others are written at the end of the next turns
    a log wants a flush `ask_for_flush`; a thread syncs it, `note_flushed` lets it count

Owned by the reactor's task, as the replicas are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..contracts.storage import PartitionLog
    from .replica import Replica
    from .replicas import Replicas

FIRST_BATCHES_MAX: Final = 20
"""How many logs may have to be made in one turn, as by their first batches: up to ten milliseconds (decision 0028)."""


class StagedWrites:
    """The way of appended batches to the disk.

    Attributes:
        flush_queue: Whose logs want to be flushed; who flushes takes it, and leaves an empty one.
    """

    __slots__ = ("_note_changed", "_on_flush_wanted", "_on_staged", "_replicas", "_staged", "flush_queue")

    def __init__(
        self, replicas: Replicas, *, on_staged: Callable[[], None], on_flush_wanted: Callable[[], None]
    ) -> None:
        """Make it, with nothing staged.

        Args:
            replicas: Told of progress and of failures.
            on_staged: Called when something is staged after nothing was: `write_staged` is to be called soon.
            on_flush_wanted: Called when `flush_queue` got an entry.
        """
        self.flush_queue: list[Replica] = []
        self._replicas = replicas
        self._note_changed = replicas.changed.note
        self._on_staged = on_staged
        self._on_flush_wanted = on_flush_wanted
        self._staged: list[Replica] = []
        replicas.on_gone_wrong = self.stage

    def __repr__(self) -> str:
        return f"<StagedWrites: {len(self._staged)} replicas to write, {len(self.flush_queue)} to flush>"

    def stage(self, replica: Replica) -> None:
        """Note that a replica has staged batches, to be written at the turn's end, or has gone wrong. Hot."""
        if not replica.is_dirty:
            replica.is_dirty = True
            self._staged.append(replica)
            if len(self._staged) == 1:
                self._on_staged()

    def write_staged(self) -> None:
        """Write what is staged, one gathered write a replica, then wake whoever waits for any of it.

        Logs that are still to be made are made few at a time: of others the next turn's end makes some more.
        """
        staged = self._staged
        if not staged:
            return
        self._staged = []
        if len(staged) > FIRST_BATCHES_MAX and self._replicas.unmade_logs_count() > FIRST_BATCHES_MAX:
            staged = self._put_off(staged)
        self._write(staged)

    def write_now(self, replicas: Iterable[Replica]) -> None:
        """Write what is staged of some replicas, before the turn's end and however many logs that makes."""
        dirty = dict.fromkeys(replica for replica in replicas if replica.is_dirty)
        if dirty:
            self._staged = [replica for replica in self._staged if replica not in dirty]
            self._write(list(dirty))

    def _put_off(self, staged: list[Replica]) -> list[Replica]:
        """Return what is written now, and have a turn come soon for what is not."""
        firsts = [replica for replica in staged if not replica.appended_offset]
        later = dict.fromkeys(firsts[FIRST_BATCHES_MAX:])
        if not later:
            return staged
        self._staged = list(later)
        self._on_staged()
        return [replica for replica in staged if replica not in later]

    def _write(self, staged: list[Replica]) -> None:
        written = []
        for replica in staged:
            if replica.offline_reason is not None:  # it went wrong as it took a batch, or was deleted since
                replica.is_dirty = False
                self._replicas.tell_offline(replica)
                continue
            try:
                if replica.write():
                    self.ask_for_flush(replica)
                else:
                    written.append(replica)
            except Exception as error:  # one replica's failure must not keep the others' batches from being written
                self._replicas.fail(replica, error)
        self._note_changed(staged)
        if written:
            self._replicas.progressed(written)

    def ask_for_flush(self, replica: Replica) -> None:
        """Have a replica's log flushed soon; `note_flushed` then counts what it has."""
        self.flush_queue.append(replica)
        self._on_flush_wanted()

    def note_flushed(self, replica: Replica, flushed: PartitionLog, error: Exception | None) -> None:
        """Take note that a log was flushed, or why not; never raises.

        Args:
            replica: Whose log it was; nothing happens if it has another one by now, or is offline.
            flushed: The log.
            error: Why it was not flushed.
        """
        if replica.log is not flushed or replica.offline_reason is not None:
            return
        if error is not None:
            self._replicas.fail(replica, error)
            return
        try:
            replica.note_appended(flushed.recovery_point)
            self._replicas.progressed((replica,))
        except Exception as exc:
            self._replicas.fail(replica, exc)
