"""Transactional producers for the sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .batches import TRANSACTIONAL, batch, records
from .conversation import UNKNOWN_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .conversation import Conversation, Fields

CONCURRENT_TRANSACTIONS: Final = 51
_NOT_ENOUGH_REPLICAS: Final = 19


class Producer:
    """One transactional producer of a session: what it calls itself, and what it asks."""

    def __init__(self, talk: Conversation, suffix: str, *, timeout_ms: int = 60_000) -> None:
        self.talk = talk
        self.transactional_id = talk.topic(suffix)
        self.producer_id, self.epoch = -1, -1
        self.sequence = 0
        talk.until_ready("FindCoordinator", 1, {"key": self.transactional_id, "key_type": 1})
        # A new broker's first id is 0, which answers about unknown transactions carry too: nobody here shall have it.
        talk.until_ready("InitProducerId", 4, {"transactional_id": None, "transaction_timeout_ms": 1_000})
        self.start(timeout_ms=timeout_ms)

    def start(self, *, timeout_ms: int = 60_000) -> None:
        """Take a producer id, or the next epoch, unnoted."""
        fields = {"transactional_id": self.transactional_id, "transaction_timeout_ms": timeout_ms}
        self.talk.until_ready("InitProducerId", 4, fields)
        self.quietly("InitProducerId", 4, fields)

    def quietly(self, api: str, version: int, fields: Fields) -> Any:
        """Ask until no other transaction of the same id is in the way; an id and an epoch in the answer are taken."""
        answer = self.talk.until(api, version, fields, lambda found: found["error_code"] != CONCURRENT_TRANSACTIONS)
        if answer.get("producer_id", -1) >= 0:
            self.producer_id, self.epoch, self.sequence = answer["producer_id"], answer["producer_epoch"], 0
        return answer

    def names(self, **more: Any) -> dict[str, Any]:
        """Return the fields that every request of a transaction has."""
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            **more,
        }

    def add(self, version: int, topics: Mapping[str, list[int]], *, note: str, **more: Any) -> Any:
        """Ask AddPartitionsToTxn; from version 4 on as brokers do, for one transaction."""
        names = self.names()
        names.update(more)
        wanted = [{"name": topic, "partitions": partitions} for topic, partitions in topics.items()]
        if version >= 4:
            fields: dict[str, Any] = {"transactions": [{**names, "topics": wanted}]}
        else:
            names.pop("verify_only", None)
            fields = {f"v3_and_below_{name}": value for name, value in {**names, "topics": wanted}.items()}
        return self.talk.ask("AddPartitionsToTxn", version, fields, note=note)

    def _batch(self, topic: str, *values: bytes, **more: Any) -> Fields:
        producer = (self.producer_id, more.pop("epoch", self.epoch), more.pop("sequence", self.sequence))
        content = batch(records(*values), attributes=TRANSACTIONAL, producer=producer)
        data = [{"name": topic, "topic_id": UNKNOWN_ID, "partition_data": [{"index": 0, "records": content}]}]
        return {"transactional_id": self.transactional_id, "acks": -1, "timeout_ms": 5000, "topic_data": data, **more}

    def warm_up(self, topic: str) -> None:
        """Produce what is refused until it is refused for good: Kafka's partition leader first has to reach the
        coordinator, and says NOT_ENOUGH_REPLICAS until then."""

        def is_final(answer: Any) -> bool:
            return bool(answer["responses"][0]["partition_responses"][0]["error_code"] != _NOT_ENOUGH_REPLICAS)

        self.talk.until("Produce", 7, self._batch(topic, b"x"), is_final)

    def produce(self, version: int, topic: str, *values: bytes, note: str, **more: Any) -> Any:
        """Ask Produce with a transactional batch; the sequence grows when it is taken."""
        answer = self.talk.ask("Produce", version, self._batch(topic, *values, **more), note=note)
        if not answer["responses"][0]["partition_responses"][0]["error_code"]:
            self.sequence += len(values)
        return answer

    def end(self, version: int, *, note: str, committed: bool = True, **more: Any) -> Any:
        """Ask EndTxn, until no end of the same transaction is under way; a raised epoch is taken."""
        fields = {**self.names(committed=committed), **more}
        answer = self.quietly("EndTxn", version, fields)
        self.talk.note_answer("EndTxn", version, note, answer)
        return answer

    def describe(self, note: str) -> None:
        """Ask how the transaction stands, once no end is under way."""

        def is_over(answer: Any) -> bool:
            return not answer["transaction_states"][0]["transaction_state"].startswith("Prepare")

        asked = {"transactional_ids": [self.transactional_id]}
        answer = self.talk.until("DescribeTransactions", 0, asked, is_over)
        self.talk.note_answer("DescribeTransactions", 0, note, answer)
