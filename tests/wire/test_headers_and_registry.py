"""Headers, whole frames and the table of APIs. Bytes in this file were computed by hand from Kafka's protocol guide."""

from __future__ import annotations

import struct
import subprocess
import sys
from typing import Any

import pytest

from odradek.kernel.wire import (
    APIS,
    DecodeError,
    EncodeError,
    ListenerKind,
    decode,
    decode_request_header,
    decode_response_header,
    encode_bytes,
    encode_request,
    encode_response,
)
from odradek.kernel.wire.headers import RequestHeader
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek.kernel.wire.messages.api_01_fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatResponse
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.kernel.wire.messages.data_control_records import EndTxnMarker
from odradek.kernel.wire.messages.data_group_records import OffsetCommitKey, OffsetCommitValue
from odradek.kernel.wire.messages.data_transaction_records import TransactionLogValue


def bytes_of(text: str) -> bytes:
    return bytes.fromhex("".join(line.partition("#")[0] for line in text.splitlines()))


def test_golden_api_versions_request_v3() -> None:
    expected = bytes_of("""
        00000017                # size
        0012 0003 00000007      # ApiVersions v3, correlation id
        0002 6d65 00            # client id with a length of two bytes, no tags
        05 6b636174 04 312e37   # kcat 1.7, compact
        00                      # no tags
    """)
    request = ApiVersionsRequest(client_software_name="kcat", client_software_version="1.7")

    assert expected == encode_request(request, 3, 7, "me").join()


def test_golden_api_versions_response_v3_has_a_header_without_tags() -> None:
    expected = bytes_of("""
        00000013 00000007                # size, correlation id, and no tag byte
        0000 02 0012 0000 0004 00        # no error, one API of 0 to 4
        00000000 00                      # throttle time, no tags
    """)
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=4)])

    assert expected == encode_response(response, 3, 7).join()


def test_golden_metadata_request_v1() -> None:
    expected = bytes_of("""
        00000015 0003 0001 00000001 ffff # null client id
        00000001 0005 746f706963         # one topic
    """)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="topic")])

    assert expected == encode_request(request, 1, 1, None).join()


def test_golden_produce_request_v9() -> None:
    expected = bytes_of("""
        00000022 0000 0009 00000002 0001 63 00
        00 ffff 000003e8                 # no transaction, acks -1, one second
        02 02 74                         # one topic, t
        02 00000003 04 010203 00         # partition 3, three bytes
        00 00
    """)
    partition = PartitionProduceData(index=3, records=b"\x01\x02\x03")
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[partition])]
    )

    encoded = encode_request(request, 9, 2, "c")

    assert expected == encoded.join()
    assert len(expected) == encoded.size_bytes


def test_golden_produce_response_v7() -> None:
    expected = bytes_of("""
        00000031 00000002                # size, correlation id
        00000001 0001 74                 # one topic, t
        00000001 00000003 0000           # partition 3, no error
        0000000000000064 ffffffffffffffff 0000000000000005
        00000000                         # throttle time
    """)
    partition = PartitionProduceResponse(index=3, base_offset=100, log_start_offset=5)
    response = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[partition])])

    assert expected == encode_response(response, 7, 2).join()


def test_golden_heartbeat_response_v4_has_a_header_with_tags() -> None:
    expected = bytes_of("0000000c 00000009 00 00000000 001b 00")

    assert expected == encode_response(HeartbeatResponse(error_code=27), 4, 9).join()


def test_golden_end_transaction_marker() -> None:
    assert bytes_of("00000007") == encode_bytes(EndTxnMarker(coordinator_epoch=7), 0)


def test_golden_offset_commit_record() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=2)
    value = OffsetCommitValue(offset=5, leader_epoch=1, metadata="m", commit_timestamp=9)

    assert bytes_of("0001 67 0001 74 00000002") == encode_bytes(key, 0)
    assert bytes_of("0000000000000005 00000001 0001 6d 0000000000000009") == encode_bytes(value, 3)
    assert bytes_of("0000000000000005 00000001 02 6d 0000000000000009 00") == encode_bytes(value, 4)


def test_golden_transaction_record() -> None:
    value = TransactionLogValue(
        producer_id=1,
        producer_epoch=2,
        transaction_timeout_ms=3,
        transaction_status=4,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=6,
        client_transaction_version=2,
    )
    expected = bytes_of("""
        0000000000000001 0002 00000003 04 00     # no partitions: null
        0000000000000005 0000000000000006
        01 02 02 0002                            # one tag: number 2, two bytes, transaction version 2
    """)

    assert expected == encode_bytes(value, 1)
    assert value == decode(TransactionLogValue, expected, 1, exact=True)


@pytest.mark.parametrize(
    ("client_id", "version", "size_bytes"),
    [("me", 2, 12), (None, 2, 10), ("", 3, 11), ("größer", 3, 19), (None, 3, 11)],
)
def test_a_request_header_comes_back(client_id: str | None, version: int, size_bytes: int) -> None:
    frame = encode_request(ApiVersionsRequest(), version, -5, client_id).join()[4:]

    assert RequestHeader(18, version, -5, client_id, size_bytes) == decode_request_header(memoryview(frame))


def test_a_request_header_steps_over_unknown_tags() -> None:
    frame = struct.pack(">hhih", 18, 3, 1, -1) + b"\x01\x09\x02xy" + b"\x02a\x02b\x00"
    header = decode_request_header(frame)

    assert header.size_bytes == 15
    assert decode(ApiVersionsRequest, frame, 3, position=header.size_bytes, exact=True).client_software_name == "a"


def test_the_header_of_an_unknown_version_can_be_read() -> None:
    frame = struct.pack(">hhih", 18, 99, 1, -1) + b"\x00"

    assert decode_request_header(frame).api_version == 99


def test_a_client_id_that_is_not_utf8_is_taken() -> None:
    frame = struct.pack(">hhih", 18, 0, 1, 1) + b"\xff"

    assert decode_request_header(frame).client_id == "\ufffd"


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        struct.pack(">hhi", 18, 0, 1),
        struct.pack(">hhih", 18, 0, 1, 5) + b"four",
        struct.pack(">hhih", 18, 3, 1, -1),
        struct.pack(">hhih", 18, 3, 1, -1) + b"\x01\x00\x05",
        struct.pack(">hhih", 4, 0, 1, -1),
        struct.pack(">hhih", 9999, 0, 1, -1),
    ],
    ids=["empty", "short", "client id", "no tags", "tag", "removed", "unknown"],
)
def test_a_malformed_request_header_is_a_decode_error(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_request_header(frame)


@pytest.mark.parametrize(("api_key", "version", "size_bytes"), [(18, 3, 4), (18, 0, 4), (12, 3, 4), (12, 4, 5)])
def test_a_response_header_comes_back(api_key: int, version: int, size_bytes: int) -> None:
    response: Any = APIS[api_key].response
    frame = encode_response(response(), version, 77).join()[4:]

    assert (77, size_bytes) == decode_response_header(frame, api_key, version)


@pytest.mark.parametrize("frame", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x01"])
def test_a_malformed_response_header_is_a_decode_error(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_response_header(frame, 12, 4)


def test_a_client_id_that_is_too_long_cannot_be_sent() -> None:
    with pytest.raises(EncodeError):
        encode_request(MetadataRequest(), 1, 1, "x" * 32768)


def test_the_size_of_a_frame_counts_records_that_stand_apart() -> None:
    partition = PartitionData(records=bytes(5000))
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    encoded = encode_response(response, 12, 1)
    frame = encoded.join()

    assert len(encoded.parts) == 3
    assert len(frame) == encoded.size_bytes == 4 + struct.unpack_from(">i", frame)[0]


def test_the_registry_holds_every_api_of_kafka_4_3() -> None:
    assert len(APIS) == 89
    assert {4, 5, 6, 7} == set(range(93)) - set(APIS)


@pytest.mark.parametrize(
    ("api_key", "versions"),
    [(0, "0-13"), (1, "4-18"), (2, "1-11"), (18, "0-4"), (22, "0-5"), (28, "0-5"), (42, "0-2"), (63, "0-2")],
)
def test_advertised_versions(api_key: int, versions: str) -> None:
    assert versions == str(APIS[api_key].versions)


def test_a_client_listener_offers_no_controller_api() -> None:
    brokers = {api.name for api in APIS.values() if ListenerKind.BROKER in api.listeners}
    controllers = {api.name for api in APIS.values() if ListenerKind.CONTROLLER in api.listeners}

    assert not brokers & {"Vote", "BeginQuorumEpoch", "AlterPartition", "BrokerHeartbeat", "Envelope"}
    assert "Fetch" in brokers & controllers
    assert len(controllers - brokers) == 12


def test_messages_are_imported_at_first_use() -> None:
    program = (
        "import sys, odradek.kernel.wire as wire\n"
        "assert not [name for name in sys.modules if '.wire.messages' in name or '.compile_' in name]\n"
        "wire.APIS[22].request\n"
        "print([name for name in sys.modules if '.wire.messages.' in name])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout

    assert found.strip() == "['odradek.kernel.wire.messages.api_22_init_producer_id']"


def test_the_registry_knows_the_lowest_versions_of_messages_without_importing_them() -> None:
    for api in APIS.values():
        assert api.lowest_of_messages == api.request.__versions__.lowest


def test_an_api_tells_the_versions_of_its_headers() -> None:
    api_versions, heartbeat = APIS[18], APIS[12]

    assert (api_versions.request_header_version(3), api_versions.response_header_version(3)) == (2, 0)
    assert (heartbeat.request_header_version(3), heartbeat.response_header_version(3)) == (1, 0)
    assert (heartbeat.request_header_version(4), heartbeat.response_header_version(4)) == (2, 1)
    assert repr(heartbeat) == "<Heartbeat (12) 0-4>"
    assert heartbeat.messages == (heartbeat.request, heartbeat.response)
