"""Pure core: the settings of a follower's fetching: Kafka's `replica.fetch.*`, `num.replica.fetchers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from ..contracts.services import ConfigView

VOTERS_WAITS_MIN: Final = 4
"""So many fetches are answered at the least while a voter waits for its leader, though there is nothing new."""


@attrs.frozen
class FetcherSettings:
    """How followers fetch.

    Attributes:
        fetchers_count: How many fetchers ask each leader, each over a connection of its own.
        partition_bytes_max: How much of one partition an answer brings, but for a first batch.
        response_bytes_max: How much an answer brings.
        bytes_min: How much a leader waits for.
        wait_ms_max: How long it waits.
        timeout_ms: How long an answer may take.
        voters_wait_ms_max: How long it waits where it is asked for replicas that vote: a part of what they wait for it.
        begins_at_tiers_end: Whether a new follower of a tiered topic copies only what is not in the store yet, and not
            all that is local (KIP-1023).
    """

    fetchers_count: int
    partition_bytes_max: int
    response_bytes_max: int
    bytes_min: int
    wait_ms_max: int
    timeout_ms: int
    voters_wait_ms_max: int
    begins_at_tiers_end: bool = False

    @classmethod
    def of(cls, config: ConfigView) -> FetcherSettings:
        """Return the settings as a broker's configuration has them."""
        return cls(
            fetchers_count=config.get_int("num.replica.fetchers"),
            partition_bytes_max=config.get_int("replica.fetch.max.bytes"),
            response_bytes_max=config.get_int("replica.fetch.response.max.bytes"),
            bytes_min=config.get_int("replica.fetch.min.bytes"),
            wait_ms_max=config.get_int("replica.fetch.wait.max.ms"),
            timeout_ms=config.get_int("replica.socket.timeout.ms"),
            voters_wait_ms_max=config.get_int("controller.quorum.fetch.timeout.ms") // VOTERS_WAITS_MIN,
            begins_at_tiers_end=config.get_bool("follower.fetch.last.tiered.offset.enable"),
        )
