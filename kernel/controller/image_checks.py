"""Pure core: whether metadata that was found can be a node's: of its cluster, and of features that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ConfigError, CorruptionError, ErrorCode, KafkaError, StorageError
from ..metadata.features import supported_ranges, unreadable_feature
from ..metadata.records import FormatRecord
from .snapshots import check_format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config.broker import BrokerConfig
    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord


def check_cluster(image: MetadataImage, cluster_id: str, where: object) -> None:
    """Check that metadata is of the cluster whose log directories these are; empty says of either: not known yet.

    Raises:
        ConfigError: It is another one's.
    """
    found = image.cluster_id
    if cluster_id and found and cluster_id != found:
        raise ConfigError(
            f"the metadata in {where} belongs to cluster {found}, the log directories to {cluster_id}",
            hint=f"if meta.properties was lost, and written again: it must say cluster.id={found}",
        )


def check_features(image: MetadataImage, config: BrokerConfig, where: object) -> None:
    """Check that the features of the metadata are at levels that this broker supports.

    Raises:
        StorageError: One is not: a newer version wrote it.
    """
    found = unreadable_feature(image.features, supported_ranges(config))
    if found is not None:
        name, level, (lowest, highest) = found
        raise StorageError(
            f"{where}: {name} is finalized at level {level}, this version of odradek supports {lowest} to {highest}: "
            f"start the newer version that wrote it, and lower {name} with it before this one is started"
        )


def check_registered_features(image: MetadataImage, who: str, supported: Mapping[str, tuple[int, int]]) -> None:
    """Check that who registers supports the features of the metadata at their levels: else it could not read it.

    Args:
        image: Says what is finalized.
        who: "broker" or "controller".
        supported: The lowest and highest level that it supports, by feature.

    Raises:
        KafkaError: UNSUPPORTED_VERSION: it does not.
    """
    found = unreadable_feature(image.features, supported)
    if found is not None:
        name, level, (lowest, highest) = found
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unable to register because the {who} does not support finalized version {level} of {name}. The {who} "
            f"wants a version between {lowest} and {highest}, inclusive.",
        )


def check_next(record: MetadataRecord, where: object, *, is_first: bool) -> None:
    """Check that a record of the log can follow on what was read before: the first of all says the format.

    Raises:
        CorruptionError: The log does not begin with its format.
        StorageError: It is a newer one.
    """
    if isinstance(record, FormatRecord):
        check_format(record, where)
    elif is_first:
        raise CorruptionError(f"{where}: the metadata log does not begin with its format")
