"""Pure core: what goes wrong between messages and bytes."""

from __future__ import annotations

from ..errors import MalformedRequestError, OdradekError


class DecodeError(MalformedRequestError):
    """Bytes are not the message they should be: too short, a wrong length, a null where none may be, too many elements.

    This is the only exception that decoding raises, whatever the bytes.
    """


class EncodeError(OdradekError):
    """A message cannot be written in the version asked for: a bug of the caller, not of the peer."""
