"""Shell: how a plugin's command writes what it found elsewhere into an empty data directory; Ctrl-C ends it."""

from __future__ import annotations

import functools
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from odradek.kernel.contracts.restoring import RestoredTopic


def restore_topics(
    topics: Sequence[RestoredTopic], *, data_dir: Path, cluster_id: str, config: Path | None, settings: Sequence[str]
) -> None:
    """See `TopicRestorer`."""
    from odradek.cli.logs.lines import configure_logging
    from odradek.kernel.adoption.restoring import restore
    from odradek.kernel.broker import read_broker_options

    from .running import run_interruptible

    if data_dir.exists() and any(data_dir.iterdir()):
        raise ConfigError(
            "the data directory is not empty", where=str(data_dir), hint="topics are restored into a new one"
        )
    configure_logging(0)
    options = read_broker_options(
        config=config,
        environment=os.environ,
        options=[*settings, f"odradek.cluster.id={cluster_id}"],
        listen=["127.0.0.1:0"],
        data_dir=data_dir,
    )
    options = attrs.evolve(options, topics=(), keeps_strays=True, runs_plugin_services=False)
    try:
        run_interruptible(functools.partial(restore, options, topics))
    except BaseException:
        _empty(data_dir)
        raise


def _empty(data_dir: Path) -> None:
    with suppress(OSError):  # what went wrong before is what the operator has to hear
        for path in data_dir.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
