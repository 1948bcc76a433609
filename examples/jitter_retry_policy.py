"""A retry policy of one's own, as a plugin in one file: each wait is drawn by chance, from a span that doubles.

When a service that consumers call is down, thousands of records fail together. Given back together, they would bring it
down once more; so each waits between nothing and its span ("full jitter"). In `odradek.toml`:

    [plugins]
    enable = ["*", "examples.jitter_retry_policy"]

and, for the retry topic of a group:

    odradek topics alter orders.billing.retry --set odradek.retry.policy=jitter
"""

from collections.abc import Mapping, Sequence

from odradek.kernel.api import (
    AtLeast,
    ConfigKey,
    ConfigType,
    Part,
    RetryPolicy,
    RetryPolicyFactory,
    Scope,
    UpdateMode,
    hookimpl,
)

BASE = "odradek.jitter.base.ms"
LONGEST = "odradek.jitter.max.ms"
ATTEMPTS = "odradek.jitter.attempts"
DEFAULTS = {BASE: 1_000, LONGEST: 600_000, ATTEMPTS: 12}
DOCS = {
    BASE: "The longest wait before a failed record is given back for the first time; it doubles each time.",
    LONGEST: "No wait is longer.",
    ATTEMPTS: "How often a record is given back before it is dead.",
}


class Jitter:
    """A `RetryPolicy`."""

    def __init__(self, base_ms: int, longest_ms: int, attempts: int) -> None:
        self._base_ms, self._longest_ms, self._attempts = base_ms, longest_ms, attempts

    def delay_ms(self, attempt: int, drawn: float) -> int | None:
        """Return a part of the span, as it was drawn; the exponent is bounded, for attempts are not."""
        if attempt > self._attempts:
            return None
        return int(min(self._base_ms << min(attempt - 1, 40), self._longest_ms) * drawn)


def make_policy(settings: Mapping[str, object]) -> RetryPolicy:
    """Make the policy of a topic."""
    base_ms, longest_ms, attempts = (settings.get(key, default) for key, default in DEFAULTS.items())
    assert isinstance(base_ms, int), "the broker parses what odradek_config_keys describes"
    assert isinstance(longest_ms, int), "and all of them"
    assert isinstance(attempts, int), "and this one"
    return Jitter(base_ms, longest_ms, attempts)


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Own the keys of the policy."""
    return [
        ConfigKey(
            name,
            ConfigType.LONG,
            default,
            AtLeast(0),
            scope=Scope.TOPIC,
            update_mode=UpdateMode.CLUSTER_WIDE,
            part=Part.TOPICS,
            doc=DOCS[name],
        )
        for name, default in DEFAULTS.items()
    ]


@hookimpl
def odradek_retry_policies() -> Mapping[str, RetryPolicyFactory]:
    """Offer `odradek.retry.policy=jitter`."""
    return {"jitter": make_policy}
