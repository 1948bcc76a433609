"""What the codec costs, in microseconds, next to kio.

    python benchmarks/wire_codec.py [name ...]

Each figure is processor time, the best of sixty short rounds: a busy machine disturbs it little. Headers are not in it.
"""

from __future__ import annotations

import io
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from odradek.kernel.wire import (
    FrameBuffer,
    Message,
    decode_request_header,
    decoder,
    encode,
    encode_bytes,
    encode_request,
    encode_response,
)
from odradek.kernel.wire.codec import ELEMENTS_MAX
from odradek.kernel.wire.compile_decoder import compile_decoder
from odradek.kernel.wire.compile_encoder import compile_encoder
from odradek.kernel.wire.messages import api_00_produce as produce
from odradek.kernel.wire.messages import api_01_fetch as fetch
from odradek.kernel.wire.messages import api_03_metadata as metadata

RECORDS = bytes(range(256)) * 64
TOPIC_ID = UUID(int=12345)


def produce_request(partitions: int, records: bytes) -> produce.ProduceRequest:
    """Return a request for one topic, by name and by id."""
    rows = [produce.PartitionProduceData(index=i, records=records) for i in range(partitions)]
    topic = produce.TopicProduceData(name="benchmark-topic", partition_data=rows)
    return produce.ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[topic])


def produce_response(partitions: int) -> produce.ProduceResponse:
    """Return the answer to it."""
    rows = [
        produce.PartitionProduceResponse(index=i, base_offset=1 << 40, log_start_offset=0) for i in range(partitions)
    ]
    return produce.ProduceResponse(
        responses=[produce.TopicProduceResponse(name="benchmark-topic", partition_responses=rows)]
    )


def fetch_request(partitions: int) -> fetch.FetchRequest:
    """Return a request for one topic."""
    rows = [
        fetch.FetchPartition(partition=i, fetch_offset=1 << 33, partition_max_bytes=1 << 20) for i in range(partitions)
    ]
    topic = fetch.FetchTopic(topic="benchmark-topic", partitions=rows)
    return fetch.FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 26, topics=[topic])


def fetch_response(partitions: int) -> fetch.FetchResponse:
    """Return an answer with 16 KiB from every partition."""
    rows = [fetch.PartitionData(partition_index=i, high_watermark=1 << 33, records=RECORDS) for i in range(partitions)]
    return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(topic="benchmark-topic", partitions=rows)])


def metadata_response(topics: int, partitions: int) -> metadata.MetadataResponse:
    """Return a cluster of three brokers."""
    nodes = [1, 2, 3]
    return metadata.MetadataResponse(
        cluster_id="cluster",
        brokers=[metadata.MetadataResponseBroker(node_id=i, host="127.0.0.1", port=9092) for i in nodes],
        topics=[
            metadata.MetadataResponseTopic(
                name=f"topic-{t}",
                topic_id=UUID(int=t + 1),
                partitions=[
                    metadata.MetadataResponsePartition(
                        partition_index=p, leader_id=1, replica_nodes=nodes, isr_nodes=nodes
                    )
                    for p in range(partitions)
                ],
            )
            for t in range(topics)
        ],
    )


MESSAGES: dict[str, tuple[Message, int]] = {
    "Produce request v9, 1 partition, 100 B": (produce_request(1, RECORDS[:100]), 9),
    "Produce request v12, 1 partition, 16 KiB": (produce_request(1, RECORDS), 12),
    "Produce request v7, 1 partition, 100 B": (produce_request(1, RECORDS[:100]), 7),
    "Produce response v7, 1 partition": (produce_response(1), 7),
    "Produce response v9, 1 partition": (produce_response(1), 9),
    "Produce response v12, 1 partition": (produce_response(1), 12),
    "Produce response v12, 10 partitions": (produce_response(10), 12),
    "Fetch request v12, 1 partition": (fetch_request(1), 12),
    "Fetch request v12, 10 partitions": (fetch_request(10), 12),
    "Fetch response v12, 1 partition": (fetch_response(1), 12),
    "Fetch response v12, 10 partitions": (fetch_response(10), 12),
    "Metadata response v12, 50 topics x 10": (metadata_response(50, 10), 12),
}


def microseconds(work: Callable[[], object]) -> float:
    """Return the best time of one call."""
    timer = timeit.Timer(work, timer=time.process_time)
    count = max(1, int(0.002 / max(timeit.timeit(work, number=3) / 3, 1e-7)))
    return min(timer.repeat(60, count)) / count * 1e6


def our_times(message: Message, version: int) -> tuple[float, float]:
    """Return what we need to decode and to encode."""
    view = memoryview(bytearray(encode_bytes(message, version)))
    read = decoder(type(message), version)
    return microseconds(lambda: read(view, 0, ELEMENTS_MAX)), microseconds(lambda: encode(message, version))


def kio_times(message: Message, version: int) -> tuple[float, float]:
    """Return what kio needs to decode and to encode the same."""
    load = load_request_schema if type(message).__name__.endswith("Request") else load_response_schema
    schema = load(message.__api_key__, version)
    data = encode_bytes(message, version)
    read, write = entity_reader(schema), entity_writer(schema)
    value, _ = read(data, 0)
    return microseconds(lambda: read(data, 0)), microseconds(lambda: write(io.BytesIO(), value))


def print_codecs(wanted: list[str]) -> None:
    """Print the table of messages."""
    print(f"{'':44}{'decode':>9}{'kio':>9}{'encode':>10}{'kio':>9}   microseconds")
    for title, (message, version) in MESSAGES.items():
        if wanted and not any(word in title for word in wanted):
            continue
        ours, theirs = our_times(message, version), kio_times(message, version)
        print(f"{title:44}{ours[0]:9.2f}{theirs[0]:9.2f}{ours[1]:10.2f}{theirs[1]:9.2f}")


def print_path() -> None:
    """Print the protocol's share of one produce: frame, header, request, and the response with its header and size."""
    request = encode_request(produce_request(1, RECORDS[:100]), 9, 1, "benchmark").join()
    response = produce_response(1)
    frames = FrameBuffer(1 << 20)
    read = decoder(produce.ProduceRequest, 9)

    def path() -> None:
        space = frames.writable()
        space[: len(request)] = request
        frames.wrote(len(request))
        frame = frames.next_frame()
        assert frame is not None
        header = decode_request_header(frame)
        read(frame, header.size_bytes, ELEMENTS_MAX)
        encode_response(response, 9, header.correlation_id)

    view = memoryview(request)[4:]
    print(f"{'request header':44}{microseconds(lambda: decode_request_header(view)):9.2f}")
    print(f"{'frame + header + Produce v9 + response':44}{microseconds(path):9.2f}")


def print_start() -> None:
    """Print what is paid once."""
    compiled = []
    for make, cls, version in (
        (compile_decoder, produce.ProduceRequest, 9),
        (compile_encoder, fetch.FetchResponse, 12),
        (compile_encoder, metadata.MetadataResponse, 12),
    ):
        start = time.perf_counter()
        make(cls, version)
        compiled.append((time.perf_counter() - start) * 1e3)
    print(f"{'compile Produce, Fetch, Metadata':44}" + " ".join(f"{t:8.2f}" for t in compiled) + "   milliseconds")
    for modules in ("odradek.kernel.errors, uuid, typing", "odradek.kernel.wire"):
        program = f"import time; t = time.perf_counter(); import {modules}; print(time.perf_counter() - t)"
        times = [
            float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
            for _ in range(9)
        ]
        print(f"{'import ' + modules:44}{min(times) * 1e3:9.1f}   milliseconds")


if __name__ == "__main__":
    print_codecs(sys.argv[1:])
    print_path()
    print_start()
