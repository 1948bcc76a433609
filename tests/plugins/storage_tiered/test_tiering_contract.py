"""The tier passes the contract kit of tiers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import attrs

from odradek.testing.contracts.tiering import TieringContract
from tests.plugins.storage_tiered.tiered_house import EVERYTHING_LOCAL, House

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from odradek.testing.contracts.tiering import TieredHost

NOTHING_LOCAL = attrs.evolve(EVERYTHING_LOCAL, local_retention_bytes=0)


class SendingHouse(House):
    async def send(self) -> None:
        """Send what is closed; what leaves has to be known to be durable, which a checkpoint says."""
        self.engine.checkpoint({})
        await self.visit()

    def settle(self) -> None:
        """Cold reads come to their end by themselves."""


class TestTheTier(TieringContract):
    def hosted(self, directory: Path) -> AbstractAsyncContextManager[TieredHost]:
        @asynccontextmanager
        async def hosted() -> AsyncIterator[TieredHost]:
            house = SendingHouse(directory, settings=NOTHING_LOCAL)
            async with house.running():
                yield house
            house.engine.close({})

        return hosted()
