"""Pure core: what users of the Spark source and sink can do wrong, and what they may lose.

Spark shows the text of an exception to the user and nothing else of it, so each text says what, where, and what to do.
"""

from __future__ import annotations

from odradek.kernel.errors import OdradekError


class OptionError(OdradekError, ValueError):
    """An option is missing, contradicts another, or has a value that is none."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(option, message)
        self.option = option
        self.message = message

    def __str__(self) -> str:
        return self.message


class SchemaError(OdradekError, ValueError):
    """A schema asks for columns that there are not, or writes columns that no record has."""


class AssignmentError(OdradekError):
    """The topics or partitions that are asked for, and those that the cluster has, do not fit."""


class DataLossError(OdradekError):
    """Records that should have been read are gone, and `failOnDataLoss` is true."""
