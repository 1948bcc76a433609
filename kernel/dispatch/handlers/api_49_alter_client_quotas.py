"""Shell: AlterClientQuotas (key 49): removing finds nothing, setting is refused: nothing would heed it.

*Source:* KIP-546; the checks of Kafka's ClientQuotaControlManager.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode, KafkaError
from ...wire.messages.api_49_alter_client_quotas import (
    AlterClientQuotasResponse,
    ResponseEntityData,
    ResponseEntryData,
)
from .api_48_describe_client_quotas import ADDRESS, CLIENT_ID, USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...contracts.api_handler import Answer, RequestContext
    from ...wire.messages.api_49_alter_client_quotas import AlterClientQuotasRequest, EntryData, OpData

_OF_CLIENTS: Final = frozenset(
    ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
)
_OF_ADDRESSES: Final = frozenset(("connection_creation_rate",))


class AlterClientQuotasHandler:
    """Answers AlterClientQuotas."""

    api_key = 49
    pieces = ListPieces("entries", answers=["entries"])

    def handle(self, request: AlterClientQuotasRequest, context: RequestContext) -> Answer:
        """Answer at once, each entry by itself."""
        return AlterClientQuotasResponse(entries=[_answered(entry) for entry in request.entries])

    def error_response(
        self, request: AlterClientQuotasRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails each entry."""
        return AlterClientQuotasResponse(
            entries=[_result(_entity(entry), KafkaError(code, detail)) for entry in request.entries]
        )


def _entity(entry: EntryData) -> dict[str, str | None]:
    return {part.entity_type: part.entity_name for part in entry.entity}


def _answered(entry: EntryData) -> ResponseEntryData:
    entity = _entity(entry)
    try:
        _check_entity(entity)
        _check_operations(entry.ops, _OF_ADDRESSES if ADDRESS in entity else _OF_CLIENTS)
    except KafkaError as error:
        return _result(entity, error)
    return _result(entity, None)


def _result(entity: Mapping[str, str | None], error: KafkaError | None) -> ResponseEntryData:
    return ResponseEntryData(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.detail,
        entity=[ResponseEntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
    )


def _check_entity(entity: Mapping[str, str | None]) -> None:
    if not entity:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, ADDRESS):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported")
    if ADDRESS in entity and len(entity) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        )
    address = entity.get(ADDRESS)
    if address is not None:
        try:
            ip_address(address)
        except ValueError:  # a name, too: nobody is to wait here for who resolves it
            detail = f"{address} is not a valid IP or resolvable host."
            raise KafkaError(ErrorCode.INVALID_REQUEST, detail) from None


def _check_operations(operations: Iterable[OpData], known: frozenset[str]) -> None:
    for operation in operations:
        key = operation.key
        if operation.remove:
            continue
        if key not in known:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
        if not operation.value > 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0")
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"{key} is not set: client quotas are not built yet, nobody is held back"
        )
