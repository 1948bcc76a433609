"""Pure core: the keys of the metadata quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from .vocabulary import BOOLEAN, HIGH, INT, LIST, LOW, MEDIUM, NOT_NEGATIVE, POSITIVE, READ_ONLY, SERVERS, VOTERS

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("controller.quorum.voters", LIST, (), VOTERS, HIGH, READ_ONLY, Part.CLUSTER),
    ("controller.quorum.bootstrap.servers", LIST, (), SERVERS, HIGH, READ_ONLY, Part.CLUSTER),
    ("controller.quorum.election.timeout.ms", INT, 1000, NOT_NEGATIVE, HIGH, READ_ONLY, Part.CLUSTER),
    ("controller.quorum.fetch.timeout.ms", INT, 2000, NOT_NEGATIVE, HIGH, READ_ONLY, Part.CLUSTER),
    ("controller.quorum.election.backoff.max.ms", INT, 1000, NOT_NEGATIVE, HIGH, READ_ONLY, Part.CLUSTER),
    ("controller.quorum.append.linger.ms", INT, 25, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("controller.quorum.request.timeout.ms", INT, 2000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("controller.quorum.retry.backoff.ms", INT, 20, NOT_NEGATIVE, LOW, READ_ONLY, Part.CLUSTER),
    ("controller.quorum.auto.join.enable", BOOLEAN, False, None, LOW, READ_ONLY, Part.CLUSTER),
    ("controller.quorum.fetch.snapshot.max.bytes", INT, 1_048_576, POSITIVE, LOW, READ_ONLY, Part.CLUSTER),
    ("controller.quorum.fetch.max.bytes", INT, 1_048_576, POSITIVE, LOW, READ_ONLY, Part.CLUSTER),
)

_DOCS: Final = """
controller.quorum.voters


controller.quorum.bootstrap.servers


controller.quorum.election.timeout.ms


controller.quorum.fetch.timeout.ms


controller.quorum.election.backoff.max.ms


controller.quorum.append.linger.ms


controller.quorum.request.timeout.ms


controller.quorum.retry.backoff.ms


controller.quorum.auto.join.enable


controller.quorum.fetch.snapshot.max.bytes


controller.quorum.fetch.max.bytes

"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)
