"""Pure core: what a quorum's replica wants done, gathered until it is asked for, and given in the order of `Ready`.

What is given stays until it is done, and nothing is added to it; what comes meanwhile stands in the next. A standing is
kept before whatever follows from it: the newest is enough, for a larger epoch, or a vote in it, binds more than the one
before. A question that has had no time to go out is replaced by the next one of its kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import IsrChange, PeerMessage, Ready, Role

from .standing import NOBODY, Standing, encode_standing

if TYPE_CHECKING:
    from odradek.kernel.api import KRaftControlRecord, Message


class Effects:
    """Effects of one replica. Owned by it."""

    def __init__(self, kept: Standing | None) -> None:
        """Begin with nothing to do.

        Args:
            kept: What is durable already, None for nothing.
        """
        self._kept = kept
        self._standing = kept
        self._told: tuple[Role, int, int] | None = None
        self._role: tuple[Role, int, int] | None = None
        self._append: tuple[KRaftControlRecord, ...] = ()
        self._high_watermark: int | None = None
        self._told_controller: IsrChange | None = None
        self._asked: dict[tuple[int, type], PeerMessage] = {}
        self._answers: list[PeerMessage] = []
        self._given: Ready | None = None

    def enter(self, standing: Standing, role: Role, leader_id: int) -> None:
        """Have a standing kept and a role taken; what was to be asked or appended before is not wanted any more."""
        self._standing = standing
        self._role = (role, leader_id, standing.epoch)
        self._append = ()
        self._told_controller = None
        self._asked.clear()

    def keep(self, standing: Standing) -> None:
        """Have a standing kept that changes nothing else."""
        self._standing = standing

    def append(self, records: tuple[KRaftControlRecord, ...]) -> None:
        """Have a leader append records."""
        self._append += records

    def ask(self, broker_id: int, request: Message) -> None:
        """Have a request sent."""
        self._asked[broker_id, type(request)] = PeerMessage(broker_id, request)

    def answer(self, asked: PeerMessage, response: Message) -> None:
        """Have a response sent."""
        self._answers.append(PeerMessage(asked.broker_id, response, asked.correlation_id))

    def tell_controller(self, change: IsrChange) -> None:
        """Have the controller told who votes for this leader."""
        self._told_controller = change

    def commit(self, high_watermark: int) -> None:
        """Have the replica told of a high watermark that no hot call returned."""
        self._high_watermark = high_watermark

    def ready(self) -> Ready | None:
        """Return what is to be done now."""
        if self._given is None and self._gathered():
            self._given = self._take()
        return self._given

    def advance(self, ready: Ready) -> None:
        """Take note that it is done."""
        if ready is self._given:
            self._given = None

    def has_any(self) -> bool:
        """Return whether something is to be done, or being done."""
        return self._given is not None or self._gathered()

    def _gathered(self) -> bool:
        return bool(
            self._standing != self._kept
            or self._role != self._told
            or self._append
            or self._asked
            or self._answers
            or self._high_watermark is not None
            or self._told_controller is not None
        )

    def _take(self) -> Ready:
        is_new_role = self._role != self._told
        role, leader_id, epoch = self._role or (Role.FOLLOWER, NOBODY, NOBODY)
        needs_epoch = is_new_role or bool(self._append)
        ready = Ready(
            hard_state=self._new_hard_state(),
            role=role if is_new_role else None,
            leader_id=leader_id if is_new_role else NOBODY,
            leader_epoch=epoch if needs_epoch else NOBODY,
            append=self._append,
            high_watermark=self._high_watermark,
            messages=(*self._answers, *self._asked.values()),
            isr_change=self._told_controller,
        )
        self._kept, self._told = self._standing, self._role
        self._append, self._high_watermark, self._told_controller = (), None, None
        self._asked.clear()
        self._answers.clear()
        return ready

    def _new_hard_state(self) -> bytes | None:
        if self._standing is None or self._standing == self._kept:
            return None
        return encode_standing(self._standing)
