"""What a topic's configuration means for its replicas."""

import pytest

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.config.topic import TopicConfig
from odradek.kernel.partitions.topic_plan import TopicPlan, decompressed_bytes_max, plan_topic
from odradek.kernel.records.validation import ValidationMode

MIB = 1 << 20


@pytest.mark.parametrize(
    ("max_message_bytes", "expected"),
    [(1000, 16 * MIB), (MIB, 32 * MIB), (10 * MIB, 128 * MIB), (500 * MIB, 500 * MIB)],
)
def test_a_compressed_batch_may_come_to_a_bounded_multiple_of_its_size(max_message_bytes: int, expected: int) -> None:
    assert decompressed_bytes_max(max_message_bytes) == expected


def planned(values: dict[str, str], *, is_internal: bool = False) -> TopicPlan:
    return plan_topic(
        TopicConfig.resolve(BrokerConfig(builtin_registry()), values),
        storage="segment",
        election="isr",
        stages=(),
        validation=ValidationMode.AUTO,
        has_compiled_kernel=True,
        is_internal=is_internal,
    )


@pytest.mark.parametrize(("is_internal", "has_tier"), [(False, True), (True, False)])
def test_the_topic_of_a_coordinator_is_never_tiered_whatever_its_configuration_says(
    is_internal: bool, has_tier: bool
) -> None:
    plan = planned({"remote.storage.enable": "true"}, is_internal=is_internal)

    assert (plan.tier is not None) == has_tier


def test_a_batch_has_to_fit_into_a_segment_of_the_topic() -> None:
    assert planned({"internal.segment.bytes": "1000"}).settings.rules.segment_bytes == 1000
