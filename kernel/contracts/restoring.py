"""Pure core: the restoring contract: topics that a plugin found elsewhere, to be written into an empty data directory.

A plugin that keeps what a broker needs in another place, such as a bucket, has a command that reads it there and hands
it to a `TopicRestorer`, which the kernel gives to `odradek_cli_commands`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import attrs

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class RestoredSidecar(NamedTuple):
    """A small file beside a log, as `PartitionLog.write_sidecar` takes it."""

    offset: int
    kind: str
    data: bytes


@attrs.frozen
class RestoredPartition:
    """A partition whose local log begins empty.

    Attributes:
        next_offset: The offset at which the local log begins, and the next record goes.
        latest_epoch: The newest leader epoch that anybody wrote under, -1 for none; the next leader has a larger one.
        sidecars: What lies beside the log.
    """

    next_offset: int
    latest_epoch: int
    sidecars: Sequence[RestoredSidecar] = ()


@attrs.frozen
class RestoredTopic:
    """A topic to be restored.

    Attributes:
        topic: Its name.
        topic_id: Its id, which stays.
        configs: Its own configs as texts.
        partitions: All of them, in the order of their numbers.
    """

    topic: str
    topic_id: uuid.UUID
    configs: Mapping[str, str]
    partitions: Sequence[RestoredPartition]


class TopicRestorer(Protocol):
    """Writes topics into an empty data directory. The plugins' services do not run meanwhile."""

    def __call__(
        self,
        topics: Sequence[RestoredTopic],
        *,
        data_dir: Path,
        cluster_id: str,
        config: Path | None,
        settings: Sequence[str],
    ) -> None:
        """Write them; all are there on return, or the directory is as empty as it was.

        Args:
            topics: The topics.
            data_dir: A directory that is empty or not there.
            cluster_id: The cluster that the data directory will be of.
            config: The broker's configuration file.
            settings: `key=value` texts over it.

        Raises:
            ConfigError: The directory is not empty, or a setting is wrong.
            KafkaError: A topic cannot be one of this broker; the text says which, and why.
            StorageError: The disk fails.
        """
        ...
