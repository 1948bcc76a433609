"""When failed records are given back: by levels, so many times. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

from .levels import Levels
from .settings import KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import ConfigKey, RetryPolicyFactory


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Own the topic keys of the policy."""
    return KEYS


@hookimpl
def odradek_retry_policies() -> Mapping[str, RetryPolicyFactory]:
    """Offer `odradek.retry.policy=levels`."""
    return {"levels": Levels.of}
