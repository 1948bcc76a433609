"""Shell: all that befalls the broker of a run, beside what its clients do; counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from .faults import EVENTS, OPERATIONS, Crashes, NetworkTrouble, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost, Cluster
    from .faults import Counted
    from .runs import Run


class Accidents:
    """Life: made, `run` once; then the broker serves and the network is whole.

    Attributes:
        are_over: Whether nothing more will go wrong.
    """

    def __init__(
        self,
        run: Run,
        cluster: Cluster,
        target: BrokerHost,
        *,
        crashes: int,
        has_trouble: bool,
        on_crash: Callable[[PowerLoss | None], None],
        has_power_losses: bool = True,
        counted: Sequence[Counted] = (EVENTS, OPERATIONS),
    ) -> None:
        """Plan them.

        Args:
            run: Where they are counted.
            cluster: Where they happen.
            target: To which broker; it is started by `run`.
            crashes: How often it crashes.
            has_trouble: Whether the network fails, too.
            on_crash: Told of each crash, as it happens.
            has_power_losses: Whether its machine may lose its power, or only the process dies.
            counted: What may be counted until it crashes.
        """
        self._run = run
        self._on_crash = on_crash
        self._crashes = Crashes(
            cluster, target, crashes, self._crashed, has_power_losses=has_power_losses, counted=counted
        )
        self._trouble = NetworkTrouble(cluster, target) if has_trouble else None
        self.are_over = False

    def _crashed(self, style: PowerLoss | None) -> None:
        self._run.count("crashes")
        self._run.count(kind_of(style))
        self._on_crash(style)

    async def run(self) -> None:
        """Let them happen."""
        async with trio.open_nursery() as nursery:
            if self._trouble is not None:
                nursery.start_soon(self._trouble.run)
            await self._crashes.run()
            nursery.cancel_scope.cancel()
        if self._trouble is not None:
            for what, count in self._trouble.counts.items():
                self._run.count(f"network: {what}", count)
        self.are_over = True
