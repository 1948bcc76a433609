"""A log whose last segment is stable too, for the tests of reading past brokers."""

from __future__ import annotations

import random

import pytest

from .log_kit import Log, make_log


@pytest.fixture
def log() -> Log:
    for seed in range(100):
        made = make_log(random.Random(seed), 40, segments_count=4)
        if made.last_stable_offset >= made.segments[3].base_offset:
            return made
    raise AssertionError
