"""A worker with confluent-kafka as it is: what it cannot work on it gives back to its group's retry topic.

odradek retry enable orders --group billing --levels 5s,1m --attempts 3
python retry_worker.py 127.0.0.1:9092 orders billing COUNT       ends when COUNT records are done or dead
"""

import sys

from confluent_kafka import Consumer, Producer


def work(value: bytes, attempt: int) -> None:
    """Stand in for work: a value says how often it fails."""
    if attempt < int(value):
        raise RuntimeError(f"no answer at attempt {attempt}")


# -- snippet worker --
def give_back(producer: Producer, retry_topic: str, record, reason: str) -> None:
    """Produce a record to the retry topic, as it is, with its headers, and wait until the broker has it."""
    headers = [header for header in record.headers() or [] if header[0] != "odradek.retry.reason"]
    if record.topic() != retry_topic:
        origin = f"{record.topic()}/{record.partition()}/{record.offset()}"
        headers.append(("odradek.retry.origin", origin.encode()))
    headers.append(("odradek.retry.reason", reason.encode()))
    failures = []
    producer.produce(
        retry_topic,
        record.value(),
        record.key(),
        headers=headers,
        partition=record.partition(),
        on_delivery=lambda error, _: failures.append(error) if error else None,
    )
    if producer.flush(30) or failures:
        raise RuntimeError(f"{retry_topic} did not take a failed record: {failures}")


def run(bootstrap: str, topic: str, group: str, count: int) -> None:
    """Work on a topic, and on what comes back."""
    retry_topic = f"{topic}.{group}.retry"
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic, retry_topic])
    while count:
        record = consumer.poll(1.0)
        if record is None or record.error():
            continue
        value = record.value() or b"0"
        attempt = int(dict(record.headers() or []).get("odradek.retry.attempt") or b"0")
        try:
            work(value, attempt)
        except RuntimeError as error:
            give_back(producer, retry_topic, record, str(error))
        else:
            print(f"done {value.decode()} attempt {attempt}", flush=True)
            count -= 1
        consumer.commit(message=record, asynchronous=False)
    consumer.close()


# -- end of the snippet --


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
