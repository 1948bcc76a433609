"""Pure core: the producers of a session by chance: their ids, epochs and sequences, so that most requests fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .world import Kind, Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .world import World


class Producers:
    """What the answers said of producers, as of the first broker: their ids are references, all else is the same."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._by_transactional_id: dict[str | None, Reference] = {}
        self._epochs: dict[Reference, int] = {}
        self._sequences: dict[object, int] = {}
        self._asked: dict[object, int] = {}

    def of(self, transactional_id: str | None) -> Reference | None:
        """Return the producer that a transactional id, or None, was last given."""
        return self._by_transactional_id.get(transactional_id)

    def epoch_of(self, producer: object) -> int:
        """Return a producer's epoch as it was told last, 0 for one that nobody was told of."""
        return self._epochs.get(producer, 0) if isinstance(producer, Reference) else 0

    def next_sequence(self, *key: object) -> int:
        """Return the sequence that a producer of an epoch is to go on with in a partition."""
        return self._sequences.get(key, 0)

    def asked(self, count: int, *key: object) -> None:
        """Take note of a batch of `count` records that fits, if it is taken."""
        self._asked[key] = count

    def noted(self, api: str, fields: Mapping[str, Any], answer: Mapping[str, Any], codes: list[int]) -> None:
        """Take note of an answer with these error codes."""
        if api == "Produce":
            if not any(codes):
                for key, count in self._asked.items():
                    self._sequences[key] = self._sequences.get(key, 0) + count
            self._asked = {}
        elif api in {"InitProducerId", "EndTxn"} and not any(codes) and answer.get("producer_id", -1) >= 0:
            producer = self._world.reference(Kind.PRODUCER_ID, answer["producer_id"])
            self._by_transactional_id[fields["transactional_id"]] = producer
            self._epochs[producer] = answer["producer_epoch"]
