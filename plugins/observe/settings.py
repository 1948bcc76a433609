"""Pure core: the key of HTTP."""

from __future__ import annotations

from typing import Final

from odradek.kernel.api import ConfigKey, ConfigType, Importance, Part, Scope, UpdateMode

HTTP_KEY: Final = "odradek.http.listener"

KEYS: Final = (
    ConfigKey(
        HTTP_KEY,
        ConfigType.STRING,
        "",
        scope=Scope.BROKER,
        importance=Importance.MEDIUM,
        update_mode=UpdateMode.READ_ONLY,
        part=Part.OBSERVE,
        doc="Where health, metrics and pages of topics are served over HTTP, as HOST:PORT; empty serves none.",
    ),
)
