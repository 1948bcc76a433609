"""Durations as people write them."""

from __future__ import annotations

import pytest

from odradek.kernel.config.durations import parse_duration
from odradek.kernel.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1h30m", 5_400_000),
        ("7d", 604_800_000),
        ("45s", 45_000),
        ("1.5s", 1_500),
        ("PT5M", 300_000),
        ("P1DT2H", 93_600_000),
        ("0s", 0),
        ("250ms", 250),
        ("5m", 300_000),
        ("5ms", 5),
        ("1s500ms", 1_500),
        ("315576000000ms", 315_576_000_000),
    ],
)
def test_durations_are_read_in_both_forms(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "5", "1m1h", "-1h", "1w", "1h ", "1ms1s", "1.5ms", "²h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no duration"):
        parse_duration(text)
