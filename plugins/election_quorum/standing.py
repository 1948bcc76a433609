"""Pure core: what a replica must never forget, as Kafka keeps it in `quorum-state`: its epoch, leader and vote.

| `data_version` | fields of the JSON object |
| --- | --- |
| 0 | `clusterId`, `leaderId`, `leaderEpoch`, `votedId`, `appliedOffset`, `currentVoters` |
| 1 | `leaderId`, `leaderEpoch`, `votedId`, `votedDirectoryId` (KIP-853) |

Either is read, 1 is written, `mayHaveLost` beside it as long as that is so, and `votersEpoch` where it is not 0. Who
lost the file, or cannot read it, might vote a second time in an epoch: what cannot be understood is refused, and the
replica with it.

*Source:* QuorumStateData and FileQuorumStateStore of Kafka 4.3.
"""

from __future__ import annotations

import json
from typing import Any, Final

from odradek.kernel.api import ZERO_ID, CorruptionError, frozen, id_text, parse_id

from .voters import ReplicaKey

NOBODY: Final = -1
VERSION: Final = 1
_VERSION_KEY: Final = "data_version"
_DOUBT_KEY: Final = "mayHaveLost"
_VOTERS_KEY: Final = "votersEpoch"
_INT32_MAX: Final = 2**31 - 1


@frozen
class Standing:
    """A replica's epoch, and what it has seen and said in it.

    Attributes:
        epoch: The largest that it has taken part in.
        leader_id: Who leads in it, `NOBODY` when unknown.
        voted: For whom it has voted in it.
        may_have_lost: Whether its log may lack what it had acknowledged.
        voters_epoch: Of the newest voters for whose candidate it has voted: it votes for no candidate of older ones.
    """

    epoch: int = 0
    leader_id: int = NOBODY
    voted: ReplicaKey | None = None
    may_have_lost: bool = False
    voters_epoch: int = 0


def encode_standing(standing: Standing) -> bytes:
    """Return what is to be kept, in Kafka's newest version."""
    voted = standing.voted or ReplicaKey(NOBODY, ZERO_ID)
    state: dict[str, object] = {
        "leaderId": standing.leader_id,
        "leaderEpoch": standing.epoch,
        "votedId": voted.broker_id,
        "votedDirectoryId": id_text(voted.directory_id),
        _VERSION_KEY: VERSION,
    }
    if standing.may_have_lost:
        state[_DOUBT_KEY] = True
    if standing.voters_epoch:
        state[_VOTERS_KEY] = standing.voters_epoch
    return json.dumps(state, separators=(",", ":")).encode()


def decode_standing(data: bytes) -> Standing:
    """Return what was kept.

    Raises:
        CorruptionError: It is damaged or cut, contradicts itself, or a newer version wrote it.
    """
    try:
        state = json.loads(data)
    except ValueError as error:
        raise CorruptionError(f"the quorum-state is damaged or cut: {error}") from error
    if not isinstance(state, dict):
        raise CorruptionError("the quorum-state is no JSON object")
    version = _number(state, _VERSION_KEY, 0)
    if version > VERSION:
        raise CorruptionError(
            f"the quorum-state has version {version}, which a newer release wrote: {VERSION} is known"
        )
    epoch = _number(state, "leaderEpoch", 0)
    leader_id = _number(state, "leaderId", NOBODY)
    voted_id = _number(state, "votedId", NOBODY)
    voted = _voted(state, voted_id, version) if voted_id != NOBODY else None
    voters_epoch = _number({_VOTERS_KEY: 0, **state}, _VOTERS_KEY, 0)
    return Standing(epoch, leader_id, voted, may_have_lost=_is_doubtful(state), voters_epoch=voters_epoch)


def _is_doubtful(state: dict[str, Any]) -> bool:
    value = state.get(_DOUBT_KEY, False)
    if not isinstance(value, bool):
        raise CorruptionError(f"the quorum-state has {_DOUBT_KEY} {value!r}")
    return value


def _number(state: dict[str, Any], name: str, least: int) -> int:
    value = state.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _INT32_MAX:
        raise CorruptionError(f"the quorum-state has {name} {value!r}")
    return value


def _voted(state: dict[str, Any], voted_id: int, version: int) -> ReplicaKey:
    if version == 0:
        return ReplicaKey(voted_id)
    text = state.get("votedDirectoryId")
    try:
        return ReplicaKey(voted_id, parse_id(text if isinstance(text, str) else ""))
    except ValueError as error:
        raise CorruptionError(f"the quorum-state has votedDirectoryId {text!r}") from error
