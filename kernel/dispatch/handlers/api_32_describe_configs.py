"""Shell: DescribeConfigs (key 32): every key of a resource, with where its value comes from.

*Source:* KIP-133, KIP-226 (synonyms, sources), KIP-569 (types, documentation); compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from ...config import describe
from ...config.broker import ConfigSource
from ...config.describe import ConfigRow
from ...config.values import ConfigType
from ...contracts.pieces import ListPieces
from ...errors import ErrorCode, KafkaError
from ...metadata.image import ResourceType
from ...metadata.names import check_topic_name
from ...wire.messages.api_32_describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...config.broker import BrokerConfig
    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.image import MetadataImage
    from ...wire.messages.api_32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_LEVELS: Final = {"WARNING": "WARN", "CRITICAL": "FATAL", "NOTSET": "INFO"}
"""Python's names of levels to log4j's, where they differ."""


class DescribeConfigsHandler:
    """Answers DescribeConfigs from the current image and this broker's configuration."""

    api_key = 32
    pieces = ListPieces(
        "resources",
        answers=["results"],
        items_max=1,
        long_frame_bytes=128,
        together="resource_type resource_name configuration_keys",
        once=True,
    )

    def __init__(
        self, *, broker_id: int, image: Callable[[], MetadataImage], config: Callable[[], BrokerConfig]
    ) -> None:
        """Make the handler.

        Args:
            broker_id: This broker, the only one it can describe.
            image: Returns the current image.
            config: Returns this broker's configuration with its dynamic layers.
        """
        self._broker_id = broker_id
        self._image = image
        self._config = config
        self._describe: Mapping[int, Callable[[str, list[str]], list[ConfigRow]]] = {
            ResourceType.TOPIC: self._topic,
            ResourceType.BROKER: self._broker,
            ResourceType.BROKER_LOGGER: self._loggers,
            ResourceType.CLIENT_METRICS: self._client_metrics,
            ResourceType.GROUP: self._group,
        }

    def handle(self, request: DescribeConfigsRequest, context: RequestContext) -> Answer:
        """Answer at once, each resource once.

        Raises:
            KafkaError: A resource is of a type that does not exist: the others are not described either.
        """
        for resource in request.resources:
            if resource.resource_type not in self._describe:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Unknown resource type of resource {resource.resource_name!r}"
                )
        # Kafka answers what is asked twice twice; here a request of 1 MB shall not ask for an answer of a gigabyte.
        once = {
            (resource.resource_type, resource.resource_name, tuple(resource.configuration_keys or ())): resource
            for resource in request.resources
        }
        return DescribeConfigsResponse(results=[self._result(resource, request) for resource in once.values()])

    def _result(self, resource: DescribeConfigsResource, request: DescribeConfigsRequest) -> DescribeConfigsResult:
        result = DescribeConfigsResult(
            error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        describe_resource = self._describe[resource.resource_type]
        try:
            rows = describe_resource(resource.resource_name, resource.configuration_keys or [])
        except KafkaError as error:
            # Kafka says nothing more of a topic that is not there.
            is_silent = error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            result.error_code, result.error_message = error.code, "" if is_silent else error.detail
        else:
            result.configs = [
                _row(row, synonyms=request.include_synonyms, documentation=request.include_documentation)
                for row in rows
            ]
        return result

    def _topic(self, name: str, keys: list[str]) -> list[ConfigRow]:
        check_topic_name(name)
        image = self._image()
        if name not in image.topics_by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return describe.describe_topic(self._config(), image.topic_config(name), keys)

    def _broker(self, name: str, keys: list[str]) -> list[ConfigRow]:
        if not name:
            return describe.describe_cluster(self._config(), keys)
        self._check_broker(name, " or empty string,")
        return describe.describe_broker(self._config(), keys)

    def _loggers(self, name: str, keys: list[str]) -> list[ConfigRow]:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        self._check_broker(name, "")
        names = ["root", *sorted(name for name in logging.root.manager.loggerDict if name.startswith("odradek"))]
        return [_logger_row(name) for name in names if not keys or name in keys]

    def _check_broker(self, name: str, alternative: str) -> None:
        if not _INTEGER.fullmatch(name) or not -(1 << 31) <= int(name) < 1 << 31:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
        if int(name) != self._broker_id:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {self._broker_id}{alternative} but received {int(name)}",
            )

    def _client_metrics(self, name: str, keys: list[str]) -> list[ConfigRow]:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        overrides = self._image().config(ResourceType.CLIENT_METRICS, name)
        return describe.describe_client_metrics(self._config(), overrides, keys)

    def _group(self, name: str, keys: list[str]) -> list[ConfigRow]:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return describe.describe_group(self._config(), self._image().config(ResourceType.GROUP, name), keys)

    def error_response(
        self, request: DescribeConfigsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every resource this error."""
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    error_code=code,
                    error_message=detail,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in request.resources
            ]
        )


def _row(row: ConfigRow, *, synonyms: bool, documentation: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=row.source,
        is_sensitive=row.is_sensitive,
        synonyms=[DescribeConfigsSynonym(name=item.name, value=item.text, source=item.source) for item in row.synonyms]
        if synonyms
        else [],
        config_type=row.type,
        documentation=row.documentation if documentation else None,
    )


def _logger_row(name: str) -> ConfigRow:
    level = logging.getLevelName(logging.getLogger(None if name == "root" else name).getEffectiveLevel())
    return ConfigRow(
        name=name,
        value=_LEVELS.get(level, level),
        read_only=False,
        source=ConfigSource.DYNAMIC_BROKER_LOGGER,
        is_sensitive=False,
        synonyms=(),
        type=ConfigType.STRING,
        documentation="",
    )
