"""Shell: IncrementalAlterConfigs (key 44): the controller decides; durable when answered.

*Source:* KIP-339.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.alter import Alteration
from ...wire.messages.api_44_incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from ..altering_handler import AlteringHandler

if TYPE_CHECKING:
    from ...wire.messages.api_44_incremental_alter_configs import AlterableConfig


class IncrementalAlterConfigsHandler(AlteringHandler):
    """Answers IncrementalAlterConfigs through the controller."""

    api_key = 44
    answer = IncrementalAlterConfigsResponse
    row = AlterConfigsResourceResponse

    def alteration(self, config: AlterableConfig) -> Alteration:
        """See `AlteringHandler.alteration`."""
        return Alteration(config.name, config.config_operation, config.value)
