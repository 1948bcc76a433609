"""Shell: ListConfigResources (key 74): what configs can be set on, of the types asked for.

*Source:* KIP-1000, KIP-1142 (types other than client metrics).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...contracts.pieces import are_many
from ...errors import ErrorCode
from ...metadata.image import ResourceType
from ...wire.messages.api_74_list_config_resources import ConfigResource, ListConfigResourcesResponse
from ..stepped_handler import SteppedHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.image import MetadataImage
    from ...wire.messages.api_74_list_config_resources import ListConfigResourcesRequest

FIRST_VERSION_WITH_TYPES: Final = 1
ALL_TYPES: Final = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


class ListConfigResourcesHandler(SteppedHandler):
    """Answers ListConfigResources from the current image."""

    api_key = 74

    def __init__(self, *, image: Callable[[], MetadataImage]) -> None:
        """Make the handler; `image` returns the current image."""
        self._image = image

    def is_long(self, request: ListConfigResourcesRequest, context: RequestContext) -> bool:
        """Return whether there are many topics or configs."""
        image = self._image()
        return are_many((len(image.topics_by_name), len(image.configs)))

    def answer_in_steps(
        self, request: ListConfigResourcesRequest, context: RequestContext
    ) -> Generator[None, None, ListConfigResourcesResponse]:
        """List what has configs, or could have."""
        types: Iterable[int] = request.resource_types or ALL_TYPES
        if context.api_version < FIRST_VERSION_WITH_TYPES:
            types = (ResourceType.CLIENT_METRICS,)
        if any(kind not in ALL_TYPES for kind in types):
            return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        image = self._image()
        resources = []
        for kind in dict.fromkeys(types):
            for name in _names(image, kind):
                resources.append(ConfigResource(resource_name=name, resource_type=kind))
                yield
        return ListConfigResourcesResponse(config_resources=resources)

    def error_response(
        self, request: ListConfigResourcesRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return ListConfigResourcesResponse(error_code=code)


def _names(image: MetadataImage, kind: int) -> Iterable[str]:
    if kind == ResourceType.TOPIC:
        return image.topics_by_name
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return map(str, image.brokers)
    return (name for other, name in image.configs if other == kind)
