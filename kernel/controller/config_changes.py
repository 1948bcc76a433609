"""Pure core: AlterConfigs and IncrementalAlterConfigs: who may be configured, and the records of what changes.

What keys and values are possible is the configuration's business (`odradek.kernel.config.alter`).

*Source:* Kafka's `ConfigAdminManager` and `ConfigurationControlManager`, as observed on 4.3.1; KIP-339.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from ..config import alter
from ..config.alter import Alteration, AlterConfigOp
from ..config.cordons import CORDONED
from ..contracts.coordinator import CoordinatorResult
from ..errors import ErrorCode, KafkaError
from ..metadata.features import has_cordons
from ..metadata.image import SCOPES, ResourceType
from ..metadata.names import check_topic_name
from ..metadata.record_makers import config_records
from ..wire.messages import api_33_alter_configs as replacing
from ..wire.messages import api_44_incremental_alter_configs as incremental
from .eligible_replicas import check_min_insync, partitions_after

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..config.broker import BrokerConfig
    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules, Steps

Change: TypeAlias = "Sequence[Alteration] | Mapping[str, str | None]"
"""What is to become of a resource: single alterations, or a mapping that replaces everything set on it."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")

Alter: TypeAlias = "Callable[[ControllerRules, MetadataImage, str, Change], dict[str, str]]"


def alter_configs(
    image: MetadataImage, rules: ControllerRules, request: replacing.AlterConfigsRequest
) -> Steps[replacing.AlterConfigsResponse]:
    """Replace all that is set on resources; each is answered by itself."""
    changes: list[tuple[int, str, Change]] = [
        (item.resource_type, item.resource_name, _replacement(item.configs)) for item in request.resources
    ]
    records, errors = yield from _alter_all(image, rules, changes)
    responses = [
        replacing.AlterConfigsResourceResponse(
            error_code=code, error_message=detail, resource_type=kind, resource_name=name
        )
        for (kind, name, _), (code, detail) in zip(changes, errors, strict=True)
    ]
    return CoordinatorResult(
        () if request.validate_only else records, replacing.AlterConfigsResponse(responses=responses)
    )


def _replacement(configs: Sequence[replacing.AlterableConfig]) -> Change:
    """Return what is to be set; a name that comes twice makes it single alterations, which are refused for that."""
    texts = {config.name: config.value for config in configs}
    if len(texts) < len(configs):
        return [Alteration(config.name, AlterConfigOp.SET, config.value) for config in configs]
    return texts


def incremental_alter_configs(
    image: MetadataImage, rules: ControllerRules, request: incremental.IncrementalAlterConfigsRequest
) -> Steps[incremental.IncrementalAlterConfigsResponse]:
    """Change single keys of resources; each resource is answered by itself."""
    changes: list[tuple[int, str, Change]] = [
        (
            item.resource_type,
            item.resource_name,
            [Alteration(config.name, config.config_operation, config.value) for config in item.configs],
        )
        for item in request.resources
    ]
    records, errors = yield from _alter_all(image, rules, changes)
    responses = [
        incremental.AlterConfigsResourceResponse(
            error_code=code, error_message=detail, resource_type=kind, resource_name=name
        )
        for (kind, name, _), (code, detail) in zip(changes, errors, strict=True)
    ]
    return CoordinatorResult(
        () if request.validate_only else records, incremental.IncrementalAlterConfigsResponse(responses=responses)
    )


def _alter_all(
    image: MetadataImage, rules: ControllerRules, changes: Sequence[tuple[int, str, Change]]
) -> Generator[None, None, tuple[list[MetadataRecord], list[tuple[int, str | None]]]]:
    """Return the records of all possible changes, and (error code, detail) of each."""
    counts = Counter((kind, name) for kind, name, _ in changes)
    records: list[MetadataRecord] = []
    errors: list[tuple[int, str | None]] = []
    for kind, name, change in changes:
        try:
            records += yield from _alter_one(image, rules, kind, name, change, times=counts[kind, name])
        except KafkaError as error:
            errors.append((error.code, error.detail))
        else:
            errors.append((ErrorCode.NONE, None))
        yield
    return records, errors


def _alter_one(
    image: MetadataImage, rules: ControllerRules, kind: int, name: str, change: Change, *, times: int
) -> Generator[None, None, list[MetadataRecord]]:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if kind not in _ALTER:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    scope, alter_resource = SCOPES[kind], _ALTER[kind]
    # In Kafka's order: a client that tries again when a topic is unknown would try again what never becomes possible.
    alterations = _as_alterations({}, change)
    alter.check_texts(alterations)
    if kind == ResourceType.BROKER and name:
        name = str(_broker_id(rules, image, name))
    alter.check_edits(rules.config_at(image), scope, alterations)
    if kind == ResourceType.BROKER and name:
        _check_cordons(image, alterations)
    after = alter_resource(rules, image, name, change)
    before = image.config(kind, name)
    check_min_insync(image, kind, name, before, after)
    records = config_records(kind, name, before, after)
    records += yield from partitions_after(image, rules, kind, name, after)
    return records


def _check_cordons(image: MetadataImage, alterations: Sequence[Alteration]) -> None:
    """Refuse to set or delete what no broker can tell the controller at the level of today."""
    is_asked = any(alteration.name == CORDONED for alteration in alterations)
    if is_asked and not has_cordons(image.features):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"The {CORDONED} configuration value cannot be set because it requires metadata.version >= 4.3-IV0",
        )


def _alter_topic(rules: ControllerRules, image: MetadataImage, name: str, change: Change) -> dict[str, str]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_topic_name(name)
    config, now = rules.config_at(image), image.topic_config(name)
    if isinstance(change, Mapping):
        after = alter.replace_topic(config, now, change)
    else:
        after = alter.alter_topic(config, now, change)
    if name not in image.topics_by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return after


def _alter_broker(rules: ControllerRules, image: MetadataImage, name: str, change: Change) -> dict[str, str]:
    config: BrokerConfig = rules.config_at(image)
    if name and int(name) != rules.node_id:
        config = config.with_dynamic(cluster=config.cluster, broker=image.config(ResourceType.BROKER, name))
    if isinstance(change, Mapping):
        return alter.replace_broker(config, change, whole_cluster=not name)
    return alter.alter_broker(config, change, whole_cluster=not name)


def _broker_id(rules: ControllerRules, image: MetadataImage, name: str) -> int:
    if not _INTEGER.fullmatch(name):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    broker_id = int(name)
    if broker_id not in image.brokers and broker_id != rules.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {rules.node_id}, but received {name}"
        )
    return broker_id


def _alter_group(rules: ControllerRules, image: MetadataImage, name: str, change: Change) -> dict[str, str]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    now = image.config(ResourceType.GROUP, name)
    return alter.alter_group(rules.config_at(image), now, _as_alterations(now, change))


def _as_alterations(now: Mapping[str, str], change: Change) -> Sequence[Alteration]:
    if not isinstance(change, Mapping):
        return change
    gone = [Alteration(name, AlterConfigOp.DELETE, None) for name in now if name not in change]
    return gone + [Alteration(name, AlterConfigOp.SET, text) for name, text in change.items()]


def _alter_client_metrics(rules: ControllerRules, image: MetadataImage, name: str, change: Change) -> dict[str, str]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    now = image.config(ResourceType.CLIENT_METRICS, name)
    return alter.alter_client_metrics(rules.config_at(image), now, _as_alterations(now, change))


_ALTER: Final[Mapping[int, Alter]] = {
    ResourceType.TOPIC: _alter_topic,
    ResourceType.BROKER: _alter_broker,
    ResourceType.GROUP: _alter_group,
    ResourceType.CLIENT_METRICS: _alter_client_metrics,
}
