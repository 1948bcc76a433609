"""Pure core: how a topic that exists differs from its section `[topics.NAME]`, which makes new topics only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import KafkaError
from .keys import Scope
from .topic import expand_storage, resolve_key
from .values import render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .broker import BrokerConfig
    from .sections import StartTopic


def differences(
    topic: StartTopic,
    config: BrokerConfig,
    *,
    partitions_count: int,
    replication_factor: int,
    overrides: Mapping[str, str],
) -> list[str]:
    """Return what the section says and the topic is not, each as `KEY is VALUE, not VALUE`.

    Args:
        topic: The section.
        config: The broker's, as it is now.
        partitions_count: Of the topic that exists.
        replication_factor: The same.
        overrides: Name to text, as set on that topic, with the storage and the election that it keeps.
    """
    counts = (
        ("partitions", partitions_count, topic.partitions),
        ("replication.factor", replication_factor, topic.replication_factor),
    )
    found = [f"{name} is {now}, not {wanted}" for name, now, wanted in counts if wanted not in (None, now)]
    keys = config.registry.keys[Scope.TOPIC]
    texts = {name: setting.text for name, setting in topic.configs.items()}
    if "odradek.storage" in texts:  # not the broker's default, which may have changed since
        try:
            texts = expand_storage(config, texts, topic.name)
        except KafkaError as error:
            return [*found, error.detail]
    for name, text in texts.items():
        now, wanted = resolve_key(keys[name], config, overrides), keys[name].parse(text)
        if now != wanted:
            found.append(f"{name} is {render(now)}, not {render(wanted)}")
    return found
