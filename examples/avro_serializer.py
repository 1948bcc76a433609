"""Records as Avro, by the library fastavro: a serializer for the producer and a deserializer for the consumer.

The schema travels with neither; both sides have it, as they would have it from a schema registry.
Run it against any broker: `pip install fastavro`, then `python examples/avro_serializer.py 127.0.0.1:9092`.
"""

from __future__ import annotations

import io
import sys
from typing import Any

import fastavro

from odradek.client import BlockingConsumer, BlockingProducer

TOPIC = "weather"
SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Weather",
        "fields": [
            {"name": "station", "type": "string"},
            {"name": "celsius", "type": "double"},
            {"name": "remark", "type": ["null", "string"], "default": None},
        ],
    }
)


class AvroSerializer:
    """Makes bytes of dictionaries that fit the schema; what does not fit raises SerializationError at the producer."""

    def serialize(self, topic: str, value: dict[str, Any] | None) -> bytes | None:
        """Return one value in Avro's binary encoding; None stays None, which is a tombstone."""
        del topic
        if value is None:
            return None
        out = io.BytesIO()
        fastavro.schemaless_writer(out, SCHEMA, value)
        return out.getvalue()


class AvroDeserializer:
    """The way back."""

    def deserialize(self, topic: str, data: bytes) -> Any:
        """Return the value that these bytes stand for."""
        del topic
        return fastavro.schemaless_reader(io.BytesIO(data), SCHEMA, None)


def main(bootstrap: str) -> list[Any]:
    """Send two readings, read them back, and return them."""
    readings = [
        {"station": "Prag", "celsius": 21.5, "remark": None},
        {"station": "Brocken", "celsius": -3.0, "remark": "fog"},
    ]
    with BlockingProducer({"bootstrap.servers": bootstrap, "value.serializer": AvroSerializer()}) as producer:
        first = producer.send(TOPIC, readings[0], partition=0)
        producer.send(TOPIC, readings[1], partition=0)
    with BlockingConsumer({"bootstrap.servers": bootstrap, "value.deserializer": AvroDeserializer()}) as consumer:
        consumer.assign([(TOPIC, 0)])
        consumer.seek((TOPIC, 0), first.offset)
        read: list[Any] = []
        while len(read) < len(readings):
            read += [record.value for record in consumer.poll()]
    for value in read:
        print(value)
    return read


if __name__ == "__main__":
    main(sys.argv[1])
