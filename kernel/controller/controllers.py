"""Pure core: what the active controller knows of the others, so that a level is finalized only when all support it.

*Source:* KIP-919; Kafka's `ClusterControlManager.registerController`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contracts.coordinator import CoordinatorResult
from ..errors import ErrorCode, KafkaError
from ..metadata.image import BrokerEndpoint, ControllerImage
from ..metadata.record_makers import controller_record
from ..wire.messages.api_70_controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from .image_checks import check_registered_features

if TYPE_CHECKING:
    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules


def controller_registration(
    image: MetadataImage, rules: ControllerRules, request: ControllerRegistrationRequest
) -> CoordinatorResult[MetadataRecord, ControllerRegistrationResponse]:
    """Register a controller; asked again, nothing more is written.

    Raises:
        KafkaError: UNSUPPORTED_VERSION: it does not support a feature at its finalized level. INVALID_REGISTRATION: its
            id is none, or nobody could reach it.
    """
    del rules
    if request.controller_id < 0 or not request.listeners:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "a controller has an id, and a listener")
    controller = ControllerImage(
        request.controller_id,
        request.incarnation_id,
        {
            item.name: BrokerEndpoint(item.name, item.host, item.port, item.security_protocol)
            for item in request.listeners
        },
        {item.name: (item.min_supported_version, item.max_supported_version) for item in request.features},
    )
    check_registered_features(image, "controller", controller.features)
    is_known = image.controllers.get(request.controller_id) == controller
    records = () if is_known else (controller_record(controller),)
    return CoordinatorResult(records, ControllerRegistrationResponse(error_message=None))
