"""Shell: AlterUserScramCredentials (key 51): there are no users, and making one is refused.

*Source:* KIP-554; the checks of Kafka's ScramControlManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...contracts.pieces import are_many
from ...errors import ErrorCode, KafkaError
from ...wire.messages.api_51_alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ..stepped_handler import SteppedHandler

if TYPE_CHECKING:
    from collections.abc import Generator

    from ...contracts.api_handler import Answer, RequestContext
    from ...wire.messages.api_51_alter_user_scram_credentials import AlterUserScramCredentialsRequest

_MECHANISMS: Final = (1, 2)
"""SCRAM-SHA-256 and SCRAM-SHA-512."""
_ITERATIONS_MIN, _ITERATIONS_MAX = 4096, 16384


class AlterUserScramCredentialsHandler(SteppedHandler):
    """Answers AlterUserScramCredentials."""

    api_key = 51

    def is_long(self, request: AlterUserScramCredentialsRequest, context: RequestContext) -> bool:
        """Return whether there are many users."""
        return are_many((len(request.deletions), len(request.upsertions)))

    def answer_in_steps(
        self, request: AlterUserScramCredentialsRequest, context: RequestContext
    ) -> Generator[None, None, AlterUserScramCredentialsResponse]:
        """Answer each user by itself."""
        return _answer_in_steps(request)

    def error_response(
        self, request: AlterUserScramCredentialsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails each user."""
        names = dict.fromkeys([each.name for each in request.deletions] + [each.name for each in request.upsertions])
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(user=name, error_code=code, error_message=detail) for name in names
            ]
        )


_NOBODY: Final = KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
_TWICE: Final = KafkaError(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)
_NOT_BUILT: Final = KafkaError(
    ErrorCode.UNSUPPORTED_VERSION, "the user is not made: SCRAM is not built yet, and nobody has to log in"
)


def _answer_in_steps(
    request: AlterUserScramCredentialsRequest,
) -> Generator[None, None, AlterUserScramCredentialsResponse]:
    refusals: dict[str, KafkaError] = {}
    made: set[tuple[str, int]] = set()
    for deletion in request.deletions:
        yield
        refusals.setdefault(deletion.name, _refusal(deletion.name, deletion.mechanism) or _NOBODY)
    for upsertion in request.upsertions:
        yield
        key = (upsertion.name, upsertion.mechanism)
        wrong = _refusal(*key, upsertion.iterations)
        if wrong is None and key in made:
            refusals[upsertion.name] = _TWICE
        made.add(key)
        refusals.setdefault(upsertion.name, wrong or _NOT_BUILT)
    results = []
    for name, refusal in refusals.items():
        yield
        results.append(
            AlterUserScramCredentialsResult(user=name, error_code=refusal.code, error_message=refusal.detail)
        )
    return AlterUserScramCredentialsResponse(results=results)


def _refusal(name: str, mechanism: int, iterations: int = _ITERATIONS_MIN) -> KafkaError | None:
    """Return what is wrong with a user, None for nothing."""
    if not name:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in _MECHANISMS:
        return KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if iterations < _ITERATIONS_MIN:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > _ITERATIONS_MAX:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None
