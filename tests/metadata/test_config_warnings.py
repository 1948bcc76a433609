"""What the log says of configs that have no effect, or another one than they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.metadata.config_warnings import ConfigWarnings
from odradek.kernel.metadata.image import MetadataDelta, MetadataImage, ResourceType

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

SESSION = "consumer.session.timeout.ms"


def broker(**texts: str) -> BrokerConfig:
    settings = {name.replace("_", "."): Setting(text, "here") for name, text in texts.items()}
    return BrokerConfig(builtin_registry(), settings)


def image_of(configs: Mapping[tuple[ResourceType, str], Mapping[str, str]]) -> MetadataImage:
    return MetadataImage(configs={(int(kind), name): texts for (kind, name), texts in configs.items()})


def test_groups_whose_own_numbers_the_broker_no_longer_allows_are_told_at_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    image = image_of(
        {
            (ResourceType.GROUP, "slow"): {SESSION: "60000", "consumer.heartbeat.interval.ms": "6000"},
            (ResourceType.GROUP, "fast"): {SESSION: "45000", "share.session.timeout.ms": "1000"},
            (ResourceType.GROUP, "right"): {SESSION: "50000"},
            (ResourceType.TOPIC, "t"): {"retention.ms": "1"},
        }
    )
    lowered = broker(group_consumer_max_session_timeout_ms="50000", group_consumer_min_session_timeout_ms="45000")
    ConfigWarnings(lowered, image, is_internal=lambda _topic: False)

    assert caplog.messages == [
        "group slow: consumer.session.timeout.ms=60000 is above this broker's group.consumer.max.session.timeout.ms: "
        "50000 counts"
    ]


def test_a_group_is_told_when_its_number_is_set_by_a_controller_that_allows_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    image = MetadataImage()
    warnings = ConfigWarnings(broker(), image, is_internal=lambda _topic: False)
    set_now = attrs.evolve(image, configs={(int(ResourceType.GROUP), "g"): {SESSION: "30000"}})
    delta = MetadataDelta(changed_configs=frozenset({(int(ResourceType.GROUP), "g")}))
    warnings.changed(delta, set_now)
    warnings.changed(delta, set_now)

    assert caplog.messages == [
        "group g: consumer.session.timeout.ms=30000 is below this broker's group.consumer.min.session.timeout.ms: "
        "45000 counts"
    ]


def test_configs_of_parts_that_are_not_built_are_told_once_when_they_are_set(caplog: pytest.LogCaptureFixture) -> None:
    image = MetadataImage()
    warnings = ConfigWarnings(broker(), image, is_internal=lambda topic: topic.startswith("__"))
    key = (int(ResourceType.GROUP), "g")
    set_now = attrs.evolve(image, configs={key: {"share.session.timeout.ms": "50000"}})
    warnings.changed(MetadataDelta(changed_configs=frozenset({key})), set_now)
    warnings.changed(MetadataDelta(changed_configs=frozenset({key})), set_now)

    (told,) = caplog.messages
    assert told.startswith("group g: share.session.timeout.ms belongs to share groups")
