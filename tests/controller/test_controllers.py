"""What the active controller knows of the others, and what it keeps them from."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.features import METADATA_VERSION, METADATA_VERSION_MAX
from odradek.kernel.metadata.image import BrokerEndpoint, ControllerImage, MetadataImage
from odradek.kernel.metadata.image_builder import ImageBuilder
from odradek.kernel.metadata.record_makers import image_records
from odradek.kernel.metadata.records import decode_record, encode_record
from odradek.kernel.wire.messages.api_57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek.kernel.wire.messages.api_70_controller_registration import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)

from .metadata_helpers import DrivenController

LEVELS = {METADATA_VERSION: (7, METADATA_VERSION_MAX), "group.version": (0, 1), "transaction.version": (0, 2)}
LEVELS["eligible.leader.replicas.version"] = (0, 1)


def registered(controller_id: int = 2, **more: Any) -> ControllerRegistrationRequest:
    levels: dict[str, tuple[int, int]] = {**LEVELS, **more.get("levels", {})}
    return ControllerRegistrationRequest(
        controller_id=controller_id,
        incarnation_id=UUID(int=more.get("incarnation", 5)),
        listeners=more.get("listeners", [Listener(name="CONTROLLER", host="two", port=9093)]),
        features=[
            Feature(name=name, min_supported_version=lowest, max_supported_version=highest)
            for name, (lowest, highest) in levels.items()
        ],
    )


def test_a_controller_is_registered_with_its_listeners_and_what_it_supports() -> None:
    driven = DrivenController()
    driven.apply(driven.controller.decide(registered()))
    endpoint = BrokerEndpoint("CONTROLLER", "two", 9093)

    assert dict(driven.image.controllers) == {2: ControllerImage(2, UUID(int=5), {"CONTROLLER": endpoint}, LEVELS)}


def test_the_same_registration_again_writes_nothing_and_a_new_process_replaces_it() -> None:
    driven = DrivenController()
    driven.apply(driven.controller.decide(registered()))
    offset = driven.image.offset
    driven.apply(driven.controller.decide(registered()))
    assert driven.image.offset == offset
    driven.apply(driven.controller.decide(registered(incarnation=6)))

    assert driven.image.controllers[2].incarnation_id == UUID(int=6)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (registered(-1), ErrorCode.INVALID_REGISTRATION),
        (registered(listeners=[]), ErrorCode.INVALID_REGISTRATION),
        (registered(levels={METADATA_VERSION: (7, METADATA_VERSION_MAX - 1)}), ErrorCode.UNSUPPORTED_VERSION),
    ],
    ids=["nobody", "nowhere", "too old"],
)
def test_a_controller_that_cannot_be_one_is_refused(request_: ControllerRegistrationRequest, code: ErrorCode) -> None:
    driven = DrivenController()
    with pytest.raises(KafkaError) as refusal:
        driven.apply(driven.controller.decide(request_))

    assert refusal.value.code is code
    assert not driven.image.controllers


def test_a_level_is_finalized_only_when_every_controller_supports_it() -> None:
    driven = DrivenController()
    lowered = [FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)]
    driven.apply(driven.controller.decide(UpdateFeaturesRequest(feature_updates=lowered)))
    driven.apply(driven.controller.decide(registered(levels={"transaction.version": (0, 1)})))
    raised = [FeatureUpdateKey(feature="transaction.version", max_version_level=2, upgrade_type=1)]
    answer = driven.apply(driven.controller.decide(UpdateFeaturesRequest(feature_updates=raised)))

    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Controller 2 only supports versions 0-1" in answer.error_message


def test_controllers_stand_in_snapshots() -> None:
    driven = DrivenController()
    driven.apply(driven.controller.decide(registered()))
    level = driven.image.metadata_version
    builder = ImageBuilder(MetadataImage())
    for record in image_records(driven.image):
        builder.replay(decode_record(encode_record(record, level)))

    assert builder.build().controllers == driven.image.controllers
