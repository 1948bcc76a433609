"""`kraft.version` is raised: the voters that the configuration names are named by the log, and may change then."""

from __future__ import annotations

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.metadata.features import KRAFT_VERSION
from odradek.kernel.metadata.image import BrokerEndpoint, ControllerImage, MetadataImage
from odradek.kernel.quorum.kraft_version import registered_voters
from odradek.kernel.records.control import KRaftVoters
from odradek.kernel.types import ZERO_ID
from tests.plugins.election_quorum.nodes import directory_of

from .quorum_world import Quorum, append, in_quorum, values

KNOWN = MetadataImage(
    controllers={
        node_id: ControllerImage(
            node_id,
            ZERO_ID,
            {"CONTROLLER": BrokerEndpoint("CONTROLLER", f"controller-{node_id}", 9093, 0)},
            {KRAFT_VERSION: (0, 1)},
        )
        for node_id in (1, 2, 3, 9)
    }
)


async def named(quorum: Quorum) -> KRaftVoters:
    """Have the leader name the voters, and return them."""
    leader = await quorum.settled()
    answer = await leader.ask(-1, registered_voters(KNOWN))
    assert answer.error_code == ErrorCode.NONE, answer  # type: ignore[attr-defined]
    assert leader.voters is not None
    return leader.voters


def test_all_replicas_have_the_voters_by_their_directories_and_go_on_with_them_after_a_restart() -> None:
    async def main(quorum: Quorum) -> tuple[KRaftVoters, list[KRaftVoters | None], list[list[bytes]]]:
        await append(await quorum.leader(), b"one")
        record = await named(quorum)
        await quorum.settled()
        for controller in quorum.controllers.values():
            controller.crash()
        for controller in quorum.controllers.values():
            controller.start()
        await append(await quorum.leader(), b"two")
        await quorum.settled()
        logs = quorum.logs.values()
        return record, [log.voters for log in logs], [values(log)[-2:] for log in logs]

    record, found, kept = in_quorum(main, static=True)

    assert [(each.voter_id, each.voter_directory_id) for each in record.voters] == [
        (node_id, directory_of(node_id)) for node_id in (1, 2, 3)
    ]
    assert record.voters[1].endpoints[0].host == "controller-2"
    assert found == [record] * 3
    assert kept == [[b"one", b"two"]] * 3


@pytest.mark.parametrize("seed", range(1, 5))
def test_voters_that_a_lost_leader_has_named_for_itself_alone_are_not_named(seed: int) -> None:
    async def main(quorum: Quorum) -> tuple[bool, list[KRaftVoters | None], list[bytes]]:
        leader = await quorum.settled()
        quorum.isolate(leader.node_id)
        answer = await leader.ask(-1, registered_voters(KNOWN))
        had_named = leader.voters is not None
        assert answer.error_code != ErrorCode.NONE  # type: ignore[attr-defined]
        other = await quorum.leader(but=leader.node_id)
        await append(other, b"one")
        quorum.cut.clear()
        await append(await quorum.settled(), b"two")
        last = await quorum.settled()
        return had_named, [log.voters for log in quorum.logs.values()], values(last)[-2:]

    had_named, found, kept = in_quorum(main, static=True, seed=seed)

    assert had_named
    assert found == [None] * 3
    assert kept == [b"one", b"two"]
