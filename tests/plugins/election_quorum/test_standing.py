"""What a voter never forgets: Kafka's `quorum-state`, read in both versions, and refused where it makes no sense."""

from __future__ import annotations

import uuid

import pytest

from odradek.kernel.api import CorruptionError
from odradek.plugins.election_quorum.standing import Standing, decode_standing, encode_standing
from odradek.plugins.election_quorum.voters import ReplicaKey

DIRECTORY = uuid.UUID("6dbb3fa1-7d2c-4b3a-9f2e-0d5b0c8f7a11")


@pytest.mark.parametrize(
    "standing",
    [
        Standing(),
        Standing(3, leader_id=2),
        Standing(4, voted=ReplicaKey(1, DIRECTORY)),
        Standing(5, 2, ReplicaKey(2)),
        Standing(6, voters_epoch=9),
    ],
    ids=str,
)
def test_what_is_kept_is_read_again(standing: Standing) -> None:
    assert decode_standing(encode_standing(standing)) == standing


def test_the_newest_version_is_written_as_kafka_writes_it() -> None:
    written = encode_standing(Standing(7, leader_id=-1, voted=ReplicaKey(2, DIRECTORY)))

    assert written == (
        b'{"leaderId":-1,"leaderEpoch":7,"votedId":2,"votedDirectoryId":"bbs_oX0sSzqfLg1bDI96EQ","data_version":1}'
    )


def test_the_version_before_directories_is_read() -> None:
    """By the schema of Kafka's QuorumStateData, version 0."""
    kept = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":3,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":3}],"data_version":0}'
    )

    assert decode_standing(kept) == Standing(2, 1, ReplicaKey(3))


WHOLE = encode_standing(Standing(7, leader_id=1))


@pytest.mark.parametrize("length", range(0, len(WHOLE), 7))
def test_a_file_that_was_cut_is_refused(length: int) -> None:
    with pytest.raises(CorruptionError, match="the quorum-state is damaged or cut"):
        decode_standing(WHOLE[:length])


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (b"[1, 2]", "is no JSON object"),
        (b"\xff\xfe", "damaged or cut"),
        (
            WHOLE.replace(b'"data_version":1', b'"data_version":2'),
            "has version 2, which a newer release wrote: 1 is known",
        ),
        (WHOLE.replace(b'"leaderEpoch":7', b'"leaderEpoch":-7'), "has leaderEpoch -7"),
        (WHOLE.replace(b'"leaderEpoch":7', b'"leaderEpoch":true'), "has leaderEpoch True"),
        (WHOLE.replace(b'"leaderId":1,', b""), "has leaderId None"),
        (WHOLE.replace(b'"leaderId":1,', b'"leaderId":1,"votersEpoch":-1,'), "has votersEpoch -1"),
        (WHOLE.replace(b'"votedId":-1', b'"votedId":4').replace(b"AAAA", b"??", 1), "has votedDirectoryId"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_contradicts_itself_is_refused(kept: bytes, told: str) -> None:
    with pytest.raises(CorruptionError, match=told):
        decode_standing(kept)
