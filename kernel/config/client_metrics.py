"""Pure core: what may be set on a client metrics subscription.

*Source:* KIP-714; what Apache Kafka 4.3.1 answers (the session `client_metrics_configs` of the differential tests).
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Final

from .. import regex
from ..errors import ErrorCode, KafkaError
from .values import Between, InvalidValueError, Value, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .keys import ConfigKey

SELECTORS: Final = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
"""What `match` can look at."""


def check_client_metrics(keys: Mapping[str, ConfigKey], texts: Mapping[str, str]) -> None:
    """Refuse what a subscription cannot have, in Kafka's order: names, values, the interval, the selectors.

    Args:
        keys: Those of a subscription.
        texts: All that is to be set on it.

    Raises:
        KafkaError: INVALID_REQUEST for an unknown name and for an interval out of range, INVALID_CONFIG for the rest.
    """
    for name in texts:
        if name not in keys:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    values = {name: _parsed(keys[name], text) for name, text in texts.items()}
    for name, value in values.items():
        if isinstance(keys[name].validator, Between):
            _check_interval(keys[name], value)
    match = values.get("match")
    for selector in match if isinstance(match, tuple) else ():
        _check_selector(selector)


def _parsed(key: ConfigKey, text: str) -> Value:
    try:
        value = parse(key.name, text, key.type)
        if key.validator is not None and not isinstance(key.validator, Between):
            key.validator.check(key.name, value)
    except InvalidValueError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return value


def _check_interval(key: ConfigKey, value: Value) -> None:
    assert key.validator is not None
    try:
        key.validator.check(key.name, value)
    except InvalidValueError as error:
        detail = f"Invalid value {value} for {key.name}, interval must be between 100 and 3600000 (1 hour)"
        raise KafkaError(ErrorCode.INVALID_REQUEST, detail) from error


def _check_selector(text: str) -> None:
    """Refuse a selector that is not `NAME=EXPRESSION`; what comes after a last `=` and is nothing does not count."""
    parts = text.split("=")
    while parts and not parts[-1]:
        parts.pop()
    if len(parts) != 2 or parts[0].strip() not in SELECTORS or not _is_expression(parts[1].strip()):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}")


def _is_expression(text: str) -> bool:
    r"""Return whether a text is a regular expression of Java's syntax, as far as RE2's and Python's together know it.

    Java has RE2's classes (`\p{L}`), which Python's syntax lacks, and looks around, which RE2's cannot. Nothing is
    matched with these expressions as long as clients are asked for no metrics.
    """
    try:
        regex.compile_pattern(text)
    except regex.PatternError:
        with warnings.catch_warnings(action="ignore"):
            try:
                re.compile(text)
            except (re.error, OverflowError, RecursionError):
                return False
    return True
