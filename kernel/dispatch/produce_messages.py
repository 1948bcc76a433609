"""Pure core: what Produce requests and responses are made of, and made into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wire.frame_template import FrameTemplate, mark
from ..wire.messages.api_00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from uuid import UUID


def one_answer(topic: TopicProduceData, answer: PartitionProduceResponse) -> ProduceResponse:
    """Return the response of a request of one partition."""
    return ProduceResponse(
        responses=[TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[answer])]
    )


def with_records(request: ProduceRequest, records: memoryview) -> ProduceRequest:
    """Return a request of one partition as it came, with its records: of one that was recognised they stand apart."""
    (topic,) = request.topic_data
    part = PartitionProduceData(index=topic.partition_data[0].index, records=records)
    return ProduceRequest(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[part])],
    )


def answer_template(topic: TopicProduceData, version: int) -> FrameTemplate:
    """Return the frame of a response of one partition without an error; to be filled with its offsets."""
    answer = PartitionProduceResponse(
        index=topic.partition_data[0].index,
        base_offset=mark(0),
        log_append_time_ms=mark(1),
        log_start_offset=mark(2),
    )
    return FrameTemplate(one_answer(topic, answer), version)


def merge_doubled(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Return the topics with each partition once: of one named twice, Kafka appends the last batch only."""
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        return topics
    names = {(topic.name, topic.topic_id) for topic in topics}
    if len(names) == len(topics) and all(
        len(topic.partition_data) == 1
        or len({part.index for part in topic.partition_data}) == len(topic.partition_data)
        for topic in topics
    ):
        return topics
    merged: dict[tuple[str, UUID], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        parts = merged.setdefault((topic.name, topic.topic_id), {})
        parts.update((part.index, part) for part in topic.partition_data)
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(parts.values()))
        for (name, topic_id), parts in merged.items()
    ]
