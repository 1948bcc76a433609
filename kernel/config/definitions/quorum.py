"""Pure core: the keys of the metadata quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from .vocabulary import BOOLEAN, HIGH, INT, LIST, LOW, MEDIUM, NOT_NEGATIVE, POSITIVE, READ_ONLY, SERVERS, VOTERS

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("controller.quorum.voters", LIST, (), VOTERS, HIGH, READ_ONLY, Part.MEMBERSHIP),
    ("controller.quorum.bootstrap.servers", LIST, (), SERVERS, HIGH, READ_ONLY, Part.MEMBERSHIP),
    ("controller.quorum.election.timeout.ms", INT, 1000, NOT_NEGATIVE, HIGH, READ_ONLY, Part.MEMBERSHIP),
    ("controller.quorum.fetch.timeout.ms", INT, 2000, NOT_NEGATIVE, HIGH, READ_ONLY, Part.MEMBERSHIP),
    ("controller.quorum.election.backoff.max.ms", INT, 1000, NOT_NEGATIVE, HIGH, READ_ONLY, Part.MEMBERSHIP),
    ("controller.quorum.append.linger.ms", INT, 25, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.WRITES),
    ("controller.quorum.request.timeout.ms", INT, 2000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.MEMBERSHIP),
    ("controller.quorum.retry.backoff.ms", INT, 20, NOT_NEGATIVE, LOW, READ_ONLY, Part.MEMBERSHIP),
    ("controller.quorum.auto.join.enable", BOOLEAN, False, None, LOW, READ_ONLY, Part.MEMBERSHIP),
    ("controller.quorum.fetch.snapshot.max.bytes", INT, 1_048_576, POSITIVE, LOW, READ_ONLY, Part.MEMBERSHIP),
    ("controller.quorum.fetch.max.bytes", INT, 1_048_576, POSITIVE, LOW, READ_ONLY, Part.MEMBERSHIP),
)

_DOCS: Final = """
controller.quorum.voters
    The voters of the metadata quorum, each `id@host:port`, who keep everybody's metadata. Every controller is one of
    them.

controller.quorum.bootstrap.servers
    Where controllers are found, each `host:port`, where `controller.quorum.voters` is not set: who of them votes stands
    in the metadata.

controller.quorum.election.timeout.ms
    How long a voter waits for a leader before it stands for election.

controller.quorum.fetch.timeout.ms
    How long a leader may go without a majority's fetches, or a voter without a fetch answered.

controller.quorum.election.backoff.max.ms
    The longest that a voter waits before it stands when its leader has resigned: whom the leader named first does not
    wait, each further one twice as long as the one before, and whom it did not name this long.

controller.quorum.append.linger.ms
    How long the leader of the quorum gathers records before it writes them.

controller.quorum.request.timeout.ms
    How long a request within the quorum may take.

controller.quorum.retry.backoff.ms
    How long until a failed request within the quorum is tried again.

controller.quorum.auto.join.enable
    Whether a controller that is no voter makes itself one: a new one, or one whose disk was replaced.

controller.quorum.fetch.snapshot.max.bytes
    How many bytes of a snapshot one request fetches.

controller.quorum.fetch.max.bytes
    How many bytes of the metadata log one request fetches.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)
