"""Pure core: what an object store's refusal means, and what to do about it.

`obstore` raises a handful of classes, and tells the rest in words: the HTTP status, and S3's, GCS's or Azure's own code
in the body. The rows of `_RULES` are tried in order; the first that fits decides.

.. versionadded:: 0.1
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from odradek.kernel.api import (
    ObjectExistsError,
    ObjectMissingError,
    RemoteStoreError,
    StoreRefusedError,
    StoreUnavailableError,
)

_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_MESSAGE: Final = re.compile(r"<Message>([^<]+)</Message>")
_ELAPSED: Final = re.compile(r" in [0-9.]+(ns|µs|ms|s)\b")
_DETAIL_CHARACTERS: Final = 300

_CREDENTIALS: Final = (
    "the store does not accept the credentials: set the provider's environment variables (AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, ...) or odradek.tiered.store.*, and let them read, write, list and delete there"
)
_NO_BUCKET: Final = "there is no such bucket: create it, or correct odradek.tiered.store"
_BUSY: Final = "the store is too busy or has a failure of its own; it is asked again later"
_UNREACHABLE: Final = (
    "the store does not answer; it is asked again later. Is the address right (AWS_ENDPOINT, "
    "odradek.tiered.store.endpoint), the network up, odradek.tiered.store.timeout.ms long enough?"
)


@attrs.frozen
class _Rule:
    """One kind of failure.

    Attributes:
        error: What it is for us.
        advice: What to tell.
        codes: Codes of the store's own that mean this.
        statuses: HTTP statuses that mean this, as a pattern.
        words: What `obstore` says, as a pattern.
    """

    error: type[RemoteStoreError]
    advice: str
    codes: frozenset[str] = frozenset()
    statuses: str = ""
    words: str = ""

    def fits(self, code: str, status: str, text: str) -> bool:
        """Say whether a failure is of this kind."""
        return (
            code in self.codes
            or bool(self.statuses and re.fullmatch(self.statuses, status))
            or bool(self.words and re.search(self.words, text))
        )


_RULES: Final = (
    _Rule(
        StoreRefusedError,
        "the store's credentials could not be had from the machine's metadata service: " + _CREDENTIALS,
        words=r"169\.254\.169\.254|metadata\.google\.internal|performing token request",
    ),
    _Rule(
        StoreRefusedError,
        _NO_BUCKET,
        frozenset({"NoSuchBucket", "InvalidBucketName", "ContainerNotFound"}),
        words="specified (bucket|container) does not exist",
    ),
    _Rule(
        StoreRefusedError,
        _CREDENTIALS,
        frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "ExpiredToken", "InvalidToken"})
        | {"XAdminUserNotFound", "AuthenticationFailed", "AuthorizationFailure", "NoAuthenticationInformation"},
    ),
    _Rule(
        StoreRefusedError,
        "this machine's clock is too far from the store's: set it",
        frozenset({"RequestTimeTooSkewed"}),
    ),
    _Rule(StoreUnavailableError, _BUSY, frozenset({"ConditionalRequestConflict", "OperationAborted"})),
    _Rule(StoreRefusedError, _CREDENTIALS, statuses="401|403"),
    _Rule(StoreUnavailableError, _BUSY, frozenset({"SlowDown"}), statuses="408|429|5.."),
    _Rule(ObjectMissingError, "there is no such object", statuses="404", words=r"^Object at location .* not found"),
    _Rule(ObjectExistsError, "there is such an object already", words=r"^Object at location .* already exists"),
    _Rule(
        StoreRefusedError,
        "the store is elsewhere: correct the region (AWS_REGION, odradek.tiered.store.region) or the endpoint",
        statuses="3..",
        words="Received redirect",
    ),
    _Rule(
        StoreRefusedError,
        "the endpoint is http and not https: allow that with AWS_ALLOW_HTTP=true or odradek.tiered.store.allow.http",
        words="BadScheme",
    ),
    _Rule(
        StoreRefusedError,
        "the store's certificate is not trusted: correct the endpoint, or have this machine trust its issuer",
        words=r"(?i)invalid peer certificate|UnknownIssuer|certificate verify failed",
    ),
    _Rule(StoreRefusedError, "the store does not take the request: is the URL right?", statuses="4.."),
    _Rule(StoreUnavailableError, _UNREACHABLE),
)


def is_beyond_the_end(text: str) -> bool:
    """Say whether a failure says no more than that a range begins at or behind the end of its object."""
    return "status code: 416" in text or "StartTooLarge" in text


def explain(text: str, what: str) -> RemoteStoreError:
    """Return the error to raise.

    Args:
        text: What `obstore` said.
        what: What was tried and where: "cannot put 'a' in s3://bucket".
    """
    status, code = (found[1] if (found := pattern.search(text)) else "" for pattern in (_STATUS, _CODE))
    rule = next((rule for rule in _RULES if rule.fits(code, status, text)), _RULES[-1])
    return rule.error(f"{what}: {rule.advice} ({_detail(text, status, code)})")


def _detail(text: str, status: str, code: str) -> str:
    """Return the store's words, the same for the same failure.

    What may hold secrets is left out (a body quotes what was signed), and so is how long it took.
    """
    if code:
        message = _MESSAGE.search(text)
        return f"{status} {code}: {message[1]}" if message else f"{status} {code}"
    line = _ELAPSED.sub("", text.partition("\n")[0].partition("<?xml")[0].strip())
    source = re.search(r"kind: (Timeout|Connect\w*)|(dns error[^\"\n]*)|ConnectionRefused|(Connection refused)", text)
    known = f", {source[0]}" if source else ""
    return line[:_DETAIL_CHARACTERS] + known
