"""Shell: makes handlers of the kernel by their API key: which module and class has one, the API's own name says.

A start makes few of them: most brokers are never asked most APIs, and the modules and messages of all take a tenth of
a start. What each is given stands in tables: `broker/handlers.py`, `admin_handlers.py`, `security_handlers.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, cast

from ..wire.registry import APIS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..contracts.api_handler import ApiHandler, AsyncApiHandler

Given: TypeAlias = "Mapping[str, object]"
"""The keyword arguments of a handler."""


def make_handler(api_key: int, given: Given, name: str = "") -> ApiHandler | AsyncApiHandler:
    """Import the handler of an API, `CreateTopicsHandler` of `handlers/api_19_create_topics.py`, and make it.

    Args:
        api_key: The API.
        given: What the handler is given.
        name: Its class, where that is not called like the API.
    """
    api = APIS[api_key]
    module = import_module(f".handlers.{api.module_name}", __package__)
    return cast("ApiHandler | AsyncApiHandler", getattr(module, name or f"{api.name}Handler")(**given))
