"""How a topic that exists differs from its section of the configuration file."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.config.sections import StartTopic
from odradek.kernel.config.start_topics import differences

KEPT = {"odradek.storage": "segment", "odradek.election": "isr"}
TIERED = {"odradek.storage": "tiered"}
IN_A_TIER = {**KEPT, "remote.storage.enable": "true"}


@pytest.mark.parametrize(
    ("section", "existing", "broker", "expected"),
    [
        ({}, {"retention.ms": "7"}, {}, []),
        ({"retention.ms": "7"}, {"retention.ms": " 7"}, {}, []),
        ({"retention.ms": "7"}, {}, {"log.retention.ms": "7"}, []),
        ({"retention.ms": "7"}, {}, {"log.retention.ms": "8"}, ["retention.ms is 8, not 7"]),
        (TIERED, IN_A_TIER, {}, []),
        (TIERED, KEPT, {}, ["remote.storage.enable is false, not true"]),
        ({}, KEPT, TIERED, []),
        ({"odradek.storage": "segment"}, KEPT, {"odradek.storage": "memory"}, []),
        (
            {**TIERED, "remote.storage.enable": "false"},
            IN_A_TIER,
            {},
            ["odradek.storage=tiered is short for segment with remote.storage.enable=true, not false"],
        ),
    ],
)
def test_only_what_the_section_says_and_the_topic_is_not_is_told(
    section: Mapping[str, str], existing: Mapping[str, str], broker: Mapping[str, str], expected: list[str]
) -> None:
    registry = builtin_registry().with_choices("odradek.storage", ["segment", "memory", "tiered"])
    config = BrokerConfig(registry, {name: Setting(text, "here") for name, text in broker.items()})
    topic = StartTopic("t", None, None, {name: Setting(text, "here") for name, text in section.items()}, "here")

    assert differences(topic, config, partitions_count=3, replication_factor=1, overrides={**KEPT, **existing}) == (
        expected
    )


def test_counts_are_told_where_the_section_has_some() -> None:
    topic = StartTopic("t", 4, 2, {}, "here")

    assert differences(
        topic, BrokerConfig(builtin_registry()), partitions_count=3, replication_factor=1, overrides=KEPT
    ) == ["partitions is 3, not 4", "replication.factor is 1, not 2"]
