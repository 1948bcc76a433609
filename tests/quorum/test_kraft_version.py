"""`kraft.version` is raised: the voters that the configuration names are named by the log, and may change then."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.features import KRAFT_VERSION
from odradek.kernel.metadata.image import BrokerEndpoint, ControllerImage, MetadataImage
from odradek.kernel.quorum.kraft_version import raises_kraft_version, registered_voters, update_features
from odradek.kernel.records.control import KRaftVoters, TriedVoters
from odradek.kernel.types import ZERO_ID
from odradek.kernel.wire.messages.api_57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
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


class FakeController:
    """One that finalizes what it is asked for, unless it refuses; notes what it is asked, `validate_only` or not."""

    def __init__(self, refusal: ErrorCode = ErrorCode.NONE) -> None:
        self.asked: list[bool] = []
        self._refusal = refusal

    async def ask(self, request: Any, timeout_ms: int | None = None) -> UpdateFeaturesResponse:
        self.asked.append(request.validate_only)
        return UpdateFeaturesResponse(error_code=self._refusal)


class FakeElection:
    """A replica whose election answers so; `asked` are the ids of the voters that it was to name."""

    voters = None

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.asked: list[int] = []
        self.is_tried = False
        self._answer = UpdateFeaturesResponse(error_code=code, error_message=message)

    async def ask(self, broker_id: int, request: Any) -> UpdateFeaturesResponse:
        self.asked += [each.voter_id for each in request.voters]
        self.is_tried = isinstance(request, TriedVoters)
        return self._answer


RAISE = UpdateFeaturesRequest(
    feature_updates=[FeatureUpdateKey(feature=KRAFT_VERSION, max_version_level=1, upgrade_type=1)]
)


def updated(
    controller: FakeController, election: FakeElection, *, validate_only: bool = False
) -> UpdateFeaturesResponse:
    """Raise the version, or ask whether it can be."""
    request = UpdateFeaturesRequest(feature_updates=RAISE.feature_updates, validate_only=validate_only)
    assert raises_kraft_version(request, election)

    async def main() -> UpdateFeaturesResponse:
        answer: UpdateFeaturesResponse = await update_features(request, controller, election, KNOWN)
        return answer

    return trio.run(main)


def test_features_are_finalized_once_the_voters_are_named() -> None:
    controller, election = FakeController(), FakeElection(ErrorCode.NONE)

    assert updated(controller, election).error_code == 0
    assert (controller.asked, election.asked) == ([True, False], [1, 2, 3, 9])


def test_nobody_is_named_where_the_controller_refuses_and_nothing_finalized_where_the_election_does() -> None:
    refusing, unasked = FakeController(ErrorCode.INVALID_UPDATE_VERSION), FakeElection(ErrorCode.NONE)
    trying, refused = FakeController(), FakeElection(ErrorCode.INVALID_UPDATE_VERSION, "One is too old.")

    assert updated(refusing, unasked).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert unasked.asked == []
    assert updated(trying, refused).error_message == (
        "The update failed for all features since the following feature had an error: One is too old."
    )
    assert trying.asked == [True]


def test_what_is_only_validated_is_asked_of_controller_and_election_and_changes_nothing() -> None:
    controller, election = FakeController(), FakeElection(ErrorCode.NONE)
    refused = FakeElection(ErrorCode.INVALID_UPDATE_VERSION, "A directory is not known.")

    assert updated(controller, election, validate_only=True).error_code == 0
    assert updated(controller, refused, validate_only=True).error_message == (
        "The update failed for all features since the following feature had an error: A directory is not known."
    )
    assert (controller.asked, election.is_tried, refused.is_tried) == ([True, True], True, True)


def test_who_leads_no_more_sends_the_client_on() -> None:
    with pytest.raises(KafkaError) as refusal:
        updated(FakeController(), FakeElection(ErrorCode.NOT_LEADER_OR_FOLLOWER, "it has resigned"))

    assert refusal.value.code is ErrorCode.NOT_CONTROLLER


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
