"""Shell: the coordinators of groups and transactional ids, found and kept, and what is asked of them.

*Source:* FindCoordinator of Kafka's protocol; `AbstractCoordinator` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from odradek.client.cluster import COORDINATOR_MOVED, Node
from odradek.kernel.errors import error_code
from odradek.kernel.wire.messages.api_09_offset_fetch import OffsetFetchRequest
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest

from .answers import COORDINATOR_LOADS, codes_in
from .errors import BrokerError, ClientError, ConnectionFailedError, UnsupportedVersionError
from .group_offsets import (
    ADVICE,
    NAMES_VERSION_MAX,
    STABLE_VERSION_MIN,
    commit_failures,
    commit_request,
    fetch_request,
    fetched_offsets,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from odradek.kernel.errors import ErrorCode
    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire import Message
    from odradek.kernel.wire.messages.api_08_offset_commit import OffsetCommitResponse
    from odradek.kernel.wire.messages.api_09_offset_fetch import OffsetFetchResponse
    from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorResponse

    from .brokers import Attempts, Brokers
    from .connection import Connection
    from .settings import ClientSettings

_ONE_KEY_VERSION_MAX: Final = 3
"""Later versions ask for many coordinators at once; one is all that is wanted here."""


class CoordinatorKind(IntEnum):
    """What is coordinated: `key_type` of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


class Coordinators:
    """Who coordinates what; one owner, the client's thread."""

    def __init__(self, brokers: Brokers, settings: ClientSettings) -> None:
        self._brokers = brokers
        self._settings = settings
        self._nodes: dict[tuple[int, str], int] = {}

    def call(
        self, kind: int, key: str, make: Callable[[Connection], tuple[Message, int]], *, what: str | None = None
    ) -> Any:
        """Ask a coordinator and return its answer, whatever it says except that another broker coordinates.

        Args:
            kind: A `CoordinatorKind`.
            key: The group or the transactional id.
            make: Makes the request and its version, for the connection that it will be sent on.
            what: The call, for errors.

        Raises:
            BrokerError: The coordinator may not be looked for.
            ClientTimeoutError: It was not found, or did not answer, in time.
            ClientError: Credentials or versions do not fit.
        """
        named = f"{CoordinatorKind(kind).name.lower()} {key!r}"
        attempts = self._brokers.attempts(what or f"asking the coordinator of {named}")
        while True:
            node_id = self._find(kind, key, named, attempts)
            try:
                with self._brokers.leased(node_id, timeout_ms=attempts.left_ms) as connection:
                    message, version = make(connection)
                    timeout_ms = min(attempts.left_ms, self._settings.request_timeout_ms)
                    response = connection.request(message, timeout_ms=timeout_ms, version=version)
            except ConnectionFailedError as error:
                self._nodes.pop((kind, key), None)
                attempts.failed(error)
                continue
            codes = set(codes_in(response))
            if not codes & (COORDINATOR_MOVED | COORDINATOR_LOADS):
                return response
            if codes & COORDINATOR_MOVED:
                self._nodes.pop((kind, key), None)
            code = next(iter(codes & (COORDINATOR_MOVED | COORDINATOR_LOADS)))
            attempts.failed(BrokerError(code, f"{connection.address} about {named}: {code.text}"))

    def _find(self, kind: int, key: str, named: str, attempts: Attempts) -> int:
        while True:
            known = self._nodes.get((kind, key))
            if known is not None:
                return known
            request = FindCoordinatorRequest(key=key, key_type=kind)
            failure: ClientError
            try:
                response: FindCoordinatorResponse = self._brokers.request_any(
                    request, timeout_ms=attempts.left_ms, version_max=_ONE_KEY_VERSION_MAX
                )
            except ConnectionFailedError as error:
                failure = error
            else:
                code = error_code(response.error_code)
                if not code:
                    self._brokers.cluster.add_nodes([Node(response.node_id, response.host, response.port)])
                    self._nodes[kind, key] = response.node_id
                    return response.node_id
                failure = BrokerError(code, f"no coordinator of {named}: {response.error_message or code.text}")
                if not code.retriable:
                    raise failure
            attempts.failed(failure)

    # Groups without members.

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets; durable once this returns.

        Raises:
            BrokerError: The group has members, or may not be used.
            ClientTimeoutError: The coordinator did not answer in time.
        """
        request = commit_request(group, offsets)
        attempts = self._brokers.attempts(f"committing offsets of group {group!r}")

        def make(connection: Connection) -> tuple[Message, int]:
            return request, connection.version_of(type(request), NAMES_VERSION_MAX)

        while True:
            response: OffsetCommitResponse = self.call(CoordinatorKind.GROUP, group, make, what=attempts.what)
            failures = list(commit_failures(response))
            if not failures:
                return
            partition, code = failures[0]
            failure = _refused(code, f"group {group!r}: the offset of {partition} was not committed")
            if not code.retriable:
                raise failure
            attempts.failed(failure)

    def committed(
        self, group: str, partitions: Collection[TopicPartition], *, require_stable: bool
    ) -> dict[TopicPartition, int]:
        """Return what is committed; partitions without an offset are left out.

        Raises:
            BrokerError: The group may not be seen.
            UnsupportedVersionError: The coordinator is too old for `require_stable`.
            ClientTimeoutError: Offsets were pending in a transaction for too long, or nobody answered.
        """
        attempts = self._brokers.attempts(f"asking for the offsets of group {group!r}")

        def make(connection: Connection) -> tuple[Message, int]:
            version = connection.version_of(OffsetFetchRequest, NAMES_VERSION_MAX)
            if require_stable and version < STABLE_VERSION_MIN:
                raise UnsupportedVersionError(
                    f"{connection.address} answers OffsetFetch up to version {version}: it cannot tell stable offsets"
                )
            return fetch_request(group, partitions, version, require_stable=require_stable), version

        while True:
            response: OffsetFetchResponse = self.call(CoordinatorKind.GROUP, group, make, what=attempts.what)
            code, offsets = fetched_offsets(response)
            if not code:
                return offsets
            failure = _refused(code, f"the offsets of group {group!r} cannot be read")
            if not code.retriable:
                raise failure
            attempts.failed(failure)


def _refused(code: ErrorCode, what: str) -> BrokerError:
    advice = ADVICE.get(code)
    return BrokerError(code, f"{what}: {code.text}" + (f" ({advice})" if advice else ""))
