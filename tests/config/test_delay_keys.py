"""The topic keys of delayed records: nothing may take from a log what still waits."""

from __future__ import annotations

import pytest

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.delay_checks import DelaySettings
from odradek.kernel.config.registry import Registry
from odradek.kernel.config.topic import TopicConfig, check_topic
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.plugins.cleanup import odradek_cleanup_policies

ON = {"odradek.delay.enable": "true"}
OFF = {"odradek.delay.enable": "false"}
RETRY = {"odradek.retry.topic": "orders", "odradek.retry.group": "billing"}
DEAD = {"odradek.retry.dead.letters.of": "orders.billing.retry"}


TIERED = {"remote.storage.enable": "true"}


def broker() -> BrokerConfig:
    registry = Registry.of().with_cleanup_policies(odradek_cleanup_policies())
    registry = registry.with_choices("odradek.delay.queue", ["wheel"])
    static = {"remote.log.storage.system.enable": Setting("true", "here")}
    return BrokerConfig(registry.with_choices("odradek.retry.policy", ["levels"]), static)


def test_a_topic_has_delays_from_when_the_key_is_first_set() -> None:
    asked = TopicConfig.resolve(broker(), {**ON, "odradek.delay.max.ms": "60"})
    ended = TopicConfig.resolve(broker(), {"odradek.delay.enable": "false"})

    assert TopicConfig.resolve(broker()).delay_settings() is None
    assert asked.delay_settings() == DelaySettings(takes_new=True, delay_ms_max=60, queue="wheel")
    assert ended.delay_settings() == DelaySettings(takes_new=False, delay_ms_max=315_576_000_000, queue="wheel")


@pytest.mark.parametrize(
    ("overrides", "now", "told"),
    [
        ({"cleanup.policy": "compact", **RETRY}, {}, "odradek.retry.topic does not go with cleanup.policy=compact"),
        ({"cleanup.policy": "compact", **RETRY, **OFF}, ON, "odradek.retry.topic does not go with"),
        ({"cleanup.policy": "compact", **DEAD}, {}, "dead.letters.of does not go with cleanup.policy=compact"),
        ({"cleanup.policy": "delete,ttl", **ON}, {}, "cleanup.policy=ttl"),
        ({"cleanup.policy": "compact,ttl", "odradek.delay.enable": "false"}, ON, "cleanup.policy=ttl"),
        ({"cleanup.policy": "compact", **ON, **TIERED}, {}, "remote.storage.enable=true and cleanup.policy=compact"),
        ({"cleanup.policy": "compact,delete", **TIERED, **OFF}, ON, "does not go with remote.storage.enable=true"),
        ({"odradek.delay.queue": "pile", **ON}, {}, "pile"),
        ({}, ON, "cannot be taken back"),
        ({**RETRY, **ON}, {}, "odradek.delay.enable=true"),
        ({**DEAD, **ON}, DEAD, "odradek.delay.enable=true"),
        ({**RETRY, "odradek.retry.topic": "bills"}, RETRY, "odradek.retry.topic cannot be altered"),
        ({**RETRY, "odradek.retry.group": "shipping"}, RETRY, "odradek.retry.group cannot be altered"),
        ({"odradek.retry.dead.letters.of": "orders"}, DEAD, "odradek.retry.dead.letters.of cannot be altered"),
    ],
)
def test_what_could_lose_a_waiting_record_is_refused(overrides: dict[str, str], now: dict[str, str], told: str) -> None:
    with pytest.raises(KafkaError, match=told) as refused:
        check_topic(broker(), overrides, now)

    assert refused.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("overrides", "now"),
    [
        (ON, {}),
        (OFF, ON),
        ({}, {}),
        (RETRY, {}),
        (RETRY, RETRY),
        (DEAD, DEAD),
        ({**RETRY, **OFF}, ON),
        ({"cleanup.policy": "compact", **ON}, {}),
        ({"cleanup.policy": "compact,delete", **ON}, ON),
        ({**ON, **TIERED}, {}),
        ({**ON, **TIERED}, ON),
        ({**RETRY, **TIERED}, {}),
        ({**DEAD, **TIERED}, DEAD),
    ],
)
def test_what_is_safe_is_taken(overrides: dict[str, str], now: dict[str, str]) -> None:
    check_topic(broker(), overrides, now)
