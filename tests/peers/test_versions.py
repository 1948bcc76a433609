"""Which version of an API two sides speak, and how an answer is read that refuses the version of the question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel import wire
from odradek.kernel.peers.errors import UnsupportedVersionError
from odradek.kernel.peers.versions import common_version, decode_api_versions
from odradek.kernel.wire.messages.api_00_produce import ProduceRequest
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.kernel.wire.versions import Versions

KAFKA_REFUSAL = bytes.fromhex("0023 00000001 0012 0000 0002")
"""What Kafka says, in version 0 (KIP-511): an error, and ApiVersions up to 2."""

NEWEST = ApiVersionsRequest.__versions__.highest
OURS = ProduceRequest.__versions__


@pytest.mark.parametrize(
    ("theirs", "version_max", "expected"),
    [
        (Versions(0, 99), None, OURS.highest),
        (Versions(0, OURS.lowest), None, OURS.lowest),
        (Versions(0, 99), OURS.lowest + 1, OURS.lowest + 1),
        (Versions(OURS.highest, 99), OURS.highest, OURS.highest),
    ],
)
def test_the_newest_version_that_both_sides_know_is_taken(
    theirs: Versions, version_max: int | None, expected: int
) -> None:
    assert common_version(ProduceRequest, {0: theirs}, "a:1", version_max) == expected


@pytest.mark.parametrize(("version_max", "expected"), [(None, OURS.highest), (5, 5)])
def test_a_broker_that_was_not_asked_yet_is_taken_to_know_what_we_know(version_max: int | None, expected: int) -> None:
    assert common_version(ProduceRequest, None, "a:1", version_max) == expected


@pytest.mark.parametrize(
    ("theirs", "version_max", "words"),
    [
        ({}, None, "a:1 does not answer Produce"),
        ({0: Versions(0, OURS.lowest - 1)}, None, f"versions .*, this client knows .*{OURS.highest}$"),
        ({0: Versions(OURS.highest + 1, 99)}, None, "a:1 answers Produce in versions"),
        ({0: Versions(9, 99)}, 8, "of which at most 8 serves here$"),
    ],
)
def test_no_common_version_is_told_with_both_sides(
    theirs: dict[int, Versions], version_max: int | None, words: str
) -> None:
    with pytest.raises(UnsupportedVersionError, match=words):
        common_version(ProduceRequest, theirs, "a:1", version_max)


def test_a_refusal_in_version_0_says_what_the_broker_takes() -> None:
    expected = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)])

    assert expected == decode_api_versions(KAFKA_REFUSAL, 0, NEWEST)


@given(rest=st.binary(max_size=40))
def test_whatever_follows_a_refusal_it_is_one(rest: bytes) -> None:
    assert decode_api_versions(b"\x00\x23" + rest, 0, NEWEST).error_code == 35


@given(rest=st.binary(max_size=40))
def test_an_answer_that_refuses_nothing_is_read_as_what_was_asked_for(rest: bytes) -> None:
    data = b"\x00\x00" + rest
    try:
        expected = wire.decode(ApiVersionsResponse, data, NEWEST)
    except wire.DecodeError:
        with pytest.raises(wire.DecodeError):
            decode_api_versions(data, 0, NEWEST)
    else:
        assert expected == decode_api_versions(data, 0, NEWEST)
