"""Pure core: `cordoned.log.dirs`: which log directories of a broker get no new logs.

Entries are compared as they stand in `log.dirs`, letter by letter; `*` alone stands for all of them.

*Source:* KIP-1066; `KafkaConfig.validateCordonedLogDirs` of Kafka 4.3.1, by what it answers.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from ..errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .broker import BrokerConfig

CORDONED: Final = "cordoned.log.dirs"
ALL: Final = "*"


def cordoned_paths(config: BrokerConfig) -> frozenset[str]:
    """Return the paths of the log directories that are cordoned; an entry that is none of `log.dirs` is left out."""
    entries = config.get_list(CORDONED)
    if not entries:
        return frozenset()
    return frozenset(str(PurePath(path)) for path in config.log_dirs if path in entries or ALL in entries)


def why_refused(entries: Sequence[str], log_dirs: Sequence[str]) -> str:
    """Return why a broker with these log directories cannot have this value; empty: it can. The words are Kafka's."""
    if ALL in entries:
        is_alone = len(entries) == 1
        return "" if is_alone else f"When {CORDONED} is set to {ALL}, it must not contain other values"
    missing = [entry for entry in entries if entry not in log_dirs]
    if not missing:
        return ""
    return f"All entries in {CORDONED} must be present in log.dirs or log.dir. Missing entries : {', '.join(missing)}"


def check_cordons(config: BrokerConfig) -> None:
    """Check the value that a broker is started with.

    Raises:
        ConfigError: It names what is no directory of `log.dirs`, or more beside `*`.
    """
    problem = why_refused(config.get_list(CORDONED), config.log_dirs)
    if problem:
        raise ConfigError(problem, where=config.where(CORDONED))
