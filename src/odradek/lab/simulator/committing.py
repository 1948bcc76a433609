"""Shell: how a transaction is committed whose producer does not give up at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.client.errors import ClientTimeoutError

if TYPE_CHECKING:
    from odradek.client.producer import Producer

COMMIT_TRIES: Final = 3


async def commit(producer: Producer) -> None:
    """Commit a transaction, asking again where it is unknown whether it is committed."""
    for _ in range(COMMIT_TRIES):
        try:
            await producer.commit_transaction()
        except ClientTimeoutError:
            continue
        else:
            return
    await producer.commit_transaction()
