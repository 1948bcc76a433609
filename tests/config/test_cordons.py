"""`cordoned.log.dirs`: what it may say, and which directories it means.

Words compared with Apache Kafka 4.3.1, 2026-11-26; it says of its directories that a requirement failed.
"""

from __future__ import annotations

import pytest

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.cordons import check_cordons, cordoned_paths
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.errors import ConfigError

DIRS = "/data/one/,/data/two"


def broker(cordoned: str, log_dirs: str = DIRS) -> BrokerConfig:
    texts = {"log.dirs": log_dirs, "cordoned.log.dirs": cordoned}
    return BrokerConfig(builtin_registry(), {name: Setting(text, "here") for name, text in texts.items()})


@pytest.mark.parametrize(
    ("text", "cordoned"),
    [
        ("", set()),
        ("*", {"/data/one", "/data/two"}),
        ("/data/two", {"/data/two"}),
        (" /data/one/ , /data/two", {"/data/one", "/data/two"}),
    ],
)
def test_directories_are_named_as_log_dirs_names_them(text: str, cordoned: set[str]) -> None:
    config = broker(text)
    check_cordons(config)

    assert cordoned_paths(config) == cordoned


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (
            "/data/one,/nowhere,/there",
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
            "/data/one, /nowhere, /there",
        ),
        ("*,/data/two", "When cordoned.log.dirs is set to *, it must not contain other values"),
    ],
)
def test_what_names_no_directory_is_refused(text: str, detail: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_cordons(broker(text))

    assert refused.value.message == detail


def test_a_directory_that_is_no_longer_in_log_dirs_is_none_that_is_cordoned() -> None:
    assert cordoned_paths(broker("/data/gone,/data/two")) == {"/data/two"}
