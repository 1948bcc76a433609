"""Pure core: a principal inside an Envelope request."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DefaultPrincipalData",
]


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    """DefaultPrincipalData, to be coded by itself."""

    type: str = f.string()
    name: str = f.string()
    token_authenticated: bool = f.boolean()
