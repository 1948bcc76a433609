"""`metadata.version` says in which versions records are written, and who can read them; up, and back down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.kernel.controller.snapshots import SnapshotId, decode_snapshot, encode_snapshot
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_ELR,
    METADATA_VERSION_MAX,
)
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.metadata.image_builder import ImageBuilder
from odradek.kernel.metadata.record_makers import image_records
from odradek.kernel.metadata.records import MetadataRecord, decode_record, encode_record, written_version
from odradek.kernel.records.reader import read_records
from odradek.kernel.types import Buffer

from .controller_requests import create_topics, topic, update_features
from .metadata_helpers import DrivenController, registration

if TYPE_CHECKING:
    from odradek.kernel.wire.messages.api_57_update_features import UpdateFeaturesResponse

OLD = METADATA_VERSION_ELR - 1
"""The newest level of a build that does not have the newest records yet."""

UPGRADE, SAFE, UNSAFE = 1, 2, 3


def decode_by_old_build(value: Buffer) -> MetadataRecord:
    """Decode as the build of level `OLD` does: it knows no version that it does not write itself."""
    record = decode_record(value)
    assert value[2] <= written_version(type(record), OLD), f"the old build cannot read {record}"
    return record


class Follower:
    """A broker of the old build that follows the metadata log, as far as it can read it."""

    def __init__(self) -> None:
        self.builder = ImageBuilder(MetadataImage())

    def read(self, values: list[bytes]) -> None:
        for value in values:
            self.builder.replay(decode_by_old_build(value))


class WrittenController(DrivenController):
    """A controller that also keeps the bytes of its records, each in the version of the level it was decided at."""

    def __init__(self, *, brokers: int, **settings: str) -> None:
        self.values: list[bytes] = []
        super().__init__(brokers=brokers, seed=1, **settings)

    def keep(self, record: MetadataRecord, metadata_version: int) -> None:
        self.values.append(encode_record(record, metadata_version))

    def taken(self) -> list[bytes]:
        """Return what was written since the last call."""
        values, self.values = self.values, []
        return values

    def create(self, name: str) -> None:
        response = self.apply(self.controller.decide(create_topics(topic(name, 2, len(self.image.brokers)))))
        assert response.topics[0].error_code == 0

    def update(self, *updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesResponse:
        response: UpdateFeaturesResponse = self.apply(
            self.controller.decide(update_features(*updates, validate_only=validate_only))
        )
        return response

    def restart(self, broker_id: int, metadata_version_max: int = METADATA_VERSION_MAX) -> int:
        """Have a broker that ended come back as another build; return its new epoch."""
        known = self.image.brokers[broker_id]
        self.apply(self.controller.change_broker(broker_id, known.broker_epoch, fence=True))
        return self.register(registration(broker_id, seed=9, metadata_version_max=metadata_version_max))

    def set_level(self, level: int, how: int) -> None:
        eligible = [(ELIGIBLE_LEADER_REPLICAS_VERSION, 0, how)] if level < METADATA_VERSION_ELR else []
        response = self.update(*eligible, (METADATA_VERSION, level, how))
        assert response.error_code == 0, response.error_message


def test_a_cluster_is_rolled_forward_broker_by_broker() -> None:
    driven = WrittenController(brokers=2, odradek_metadata_version_max=str(OLD))
    follower = Follower()
    follower.read(driven.taken())
    driven.rules = type(driven)(brokers=0).rules  # the controller's node is the first that runs the new build
    driven.controller = type(driven.controller)(image=driven.image, rules=driven.rules)

    driven.create("before")
    follower.read(driven.taken())
    assert follower.builder.build().topics_by_name.keys() == {"before"}

    refused = driven.update((METADATA_VERSION, METADATA_VERSION_MAX, UPGRADE))
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Broker 1 only supports versions 7-22" in (refused.error_message or "")

    for broker_id in (1, 2):
        driven.restart(broker_id)
    driven.set_level(METADATA_VERSION_MAX, UPGRADE)
    follower.read(driven.taken())
    driven.create("after")
    with pytest.raises(AssertionError, match="the old build cannot read"):
        follower.read(driven.taken())


def test_a_cluster_is_rolled_back_by_a_snapshot_in_the_older_versions() -> None:
    driven = WrittenController(brokers=2)
    driven.create("t")
    driven.taken()
    driven.set_level(OLD, SAFE)
    image = driven.image

    snapshot = encode_snapshot(image, now_ms=0)
    builder = ImageBuilder(MetadataImage())
    for record in list(read_records(snapshot))[:-1]:
        builder.replay(decode_by_old_build(record.value or b""))
    assert list(image_records(builder.build())) == list(image_records(image))
    decoded = decode_snapshot(snapshot, "a test", SnapshotId(image.offset + 1, image.epoch)).image
    assert decoded.metadata_version == OLD

    driven.taken()
    driven.create("u")
    follower = Follower()
    follower.builder = builder
    follower.read(driven.taken())
    assert follower.builder.build().topics_by_name.keys() == {"t", "u"}


def test_a_broker_that_cannot_read_the_level_is_refused_and_nothing_is_written() -> None:
    driven = DrivenController(brokers=1)
    before = driven.image

    with pytest.raises(KafkaError) as raised:
        driven.register(registration(2, metadata_version_max=OLD))

    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert raised.value.detail == (
        "Unable to register because the broker does not support finalized version 30 of metadata.version. The broker "
        "wants a version between 7 and 22, inclusive."
    )
    assert before is driven.image


def test_a_broker_that_does_not_say_what_it_supports_supports_nothing() -> None:
    driven = DrivenController(brokers=1)
    wanted = registration(2)
    silent = type(wanted)(broker_id=2, incarnation_id=wanted.incarnation_id, listeners=wanted.listeners)

    with pytest.raises(KafkaError, match=r"wants a version between 0 and 0, inclusive"):
        driven.register(silent)


def test_a_broker_of_the_old_build_comes_back_once_the_level_is_lowered() -> None:
    driven = WrittenController(brokers=2)
    driven.set_level(OLD, SAFE)
    epoch = driven.restart(2, metadata_version_max=OLD)

    assert driven.image.brokers[2].broker_epoch == epoch
    assert driven.image.brokers[2].features[METADATA_VERSION] == (7, OLD)


def test_a_fenced_broker_keeps_the_level_down_too() -> None:
    driven = WrittenController(brokers=1, odradek_metadata_version_max=str(OLD))
    driven.register(registration(2, metadata_version_max=OLD, is_fenced=True))
    driven.rules = type(driven)(brokers=0).rules
    driven.controller = type(driven.controller)(image=driven.image, rules=driven.rules)
    driven.restart(1)

    refused = driven.update((METADATA_VERSION, METADATA_VERSION_MAX, UPGRADE))

    assert "Broker 2 only supports versions 7-22" in (refused.error_message or "")


@pytest.mark.parametrize("how", [SAFE, UNSAFE])
def test_an_upgrade_is_asked_for_as_one(how: int) -> None:
    driven = WrittenController(brokers=1)
    driven.set_level(OLD, SAFE)

    refused = driven.update((METADATA_VERSION, METADATA_VERSION_MAX, how))

    # The answer of Apache Kafka 4.3.1 for transaction.version.
    assert "Invalid update version 30 for feature metadata.version. Can't downgrade to a newer version." in (
        refused.error_message or ""
    )


def test_an_unsafe_downgrade_is_not_supported() -> None:
    refused = WrittenController(brokers=1).update((METADATA_VERSION, OLD, UNSAFE))

    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Unsafe metadata downgrade is not supported in this version." in (refused.error_message or "")


def test_what_is_only_validated_changes_nothing() -> None:
    driven = WrittenController(brokers=1)
    assert driven.update((METADATA_VERSION, METADATA_VERSION_ELR, SAFE), validate_only=True).error_code == 0

    assert driven.image.metadata_version == METADATA_VERSION_MAX
