"""Shell: AlterConfigs (key 33): all keys of a resource are set; those that are not named go back to their defaults.

*Source:* KIP-133.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.alter import Alteration, AlterConfigOp
from ...wire.messages.api_33_alter_configs import AlterConfigsResourceResponse, AlterConfigsResponse
from ..altering_handler import AlteringHandler

if TYPE_CHECKING:
    from ...wire.messages.api_33_alter_configs import AlterableConfig


class AlterConfigsHandler(AlteringHandler):
    """Answers AlterConfigs through the controller."""

    api_key = 33
    answer = AlterConfigsResponse
    row = AlterConfigsResourceResponse

    def alteration(self, config: AlterableConfig) -> Alteration:
        """See `AlteringHandler.alteration`."""
        return Alteration(config.name, AlterConfigOp.SET, config.value)
