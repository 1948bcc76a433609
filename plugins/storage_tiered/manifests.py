"""Shell: the manifests of a partition in a store: which is the newest, and how the next one comes to be.

    take_over            load newest n ── create n+1 with my leader epoch ── nobody above? ── I may write
    put_next             create n+1 ── read it back ── nobody above n+1? ── remove the ones from long ago

Every version is created once and by one writer, so two leaders at a time make one line of versions all the same: the
slower one finds the version taken, or, when that was cleaned up already, a higher one above its own. A writer
that then meets a larger leader epoch than its own has been deposed (`FencedError`); one that meets a smaller epoch, or
its own from before a restart, takes note of what it says and goes on from there (`ManifestMovedError`).

All of it blocks, and is for worker threads; of one partition by one thread at a time.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import ObjectExistsError, ObjectMissingError, RemoteStoreError

from .documents import CorruptDocumentError
from .manifest import Manifest, decode_manifest, encode_manifest, new_manifest
from .names import ManifestName, manifest_name, manifest_prefix, parse_name

if TYPE_CHECKING:
    from odradek.kernel.api import ObjectStore, TopicIdPartition

KEPT_VERSIONS: Final = 4
"""How many versions stay: the newest, and some before it for who has to find out what happened."""

_ATTEMPTS: Final = 5


class FencedError(RemoteStoreError):
    """A leader of a larger epoch has written: this one writes nothing more to the store and removes nothing there.

    Attributes:
        leader_epoch: The larger epoch.
    """

    def __init__(self, message: str, leader_epoch: int) -> None:
        super().__init__(message)
        self.leader_epoch = leader_epoch


class OtherLogError(RemoteStoreError):
    """What the store has of a partition was never in the local log: nothing is sent there, and nothing removed."""


class ManifestMovedError(RemoteStoreError):
    """The newest version is another one than was thought, and not of a later leader: load it, and decide again."""


def load_newest(store: ObjectStore, partition: TopicIdPartition) -> Manifest | None:
    """Return the newest manifest of a partition, None when there is none.

    Raises:
        RemoteStoreError: The store fails; or what is newest is damaged or of a later format (`documents`). An older
            one is no substitute: it names objects that may be gone.
    """
    for _ in range(_ATTEMPTS):
        versions = stored_versions(store, partition)
        if not versions:
            return None
        try:
            return load_version(store, partition, versions[-1])
        except ObjectMissingError:
            continue  # while it was listed, its successors came and it was cleaned up
    raise ManifestMovedError(f"the manifest of {partition} in {store.url} changes faster than it can be read")


def load_to_change(store: ObjectStore, partition: TopicIdPartition, leader_epoch: int) -> Manifest | None:
    """Return the newest manifest of a partition to who leads it and is about to put the next, None when there is none.

    Raises:
        FencedError: A leader of a larger epoch has written it.
        RemoteStoreError: As `load_newest`.
    """
    newest = load_newest(store, partition)
    if newest is not None and newest.leader_epoch > leader_epoch:
        raise _fenced(store, newest, leader_epoch)
    return newest


def _fenced(store: ObjectStore, other: Manifest, leader_epoch: int) -> FencedError:
    told = f"{_told_of(store, other)} {other.leader_epoch}, this broker's is {leader_epoch}"
    return FencedError(told, other.leader_epoch)


def _told_of(store: ObjectStore, other: Manifest) -> str:
    partition = other.topic_id_partition
    return f"version {other.version} of the manifest of {partition} in {store.url} was written under leader epoch"


def stored_versions(store: ObjectStore, partition: TopicIdPartition) -> list[int]:
    """Return the versions of a partition's manifest that are in the store, in order."""
    names = (parse_name(info.name) for info in store.list(manifest_prefix(partition)))
    return sorted(name.version for name in names if isinstance(name, ManifestName))


def load_version(store: ObjectStore, partition: TopicIdPartition, version: int) -> Manifest:
    """Return one version of a partition's manifest.

    Raises:
        ObjectMissingError: It is not there.
        RemoteStoreError: As `load_newest`.
    """
    name = manifest_name(partition, version)
    where = f"the manifest of partition {partition} ({name} in {store.url})"
    manifest = decode_manifest(store.get(name), where)
    if (manifest.topic_id_partition, manifest.version) != (partition, version):
        raise CorruptDocumentError(f"{where} is version {manifest.version} of {manifest.topic_id_partition}")
    return manifest


def put_next(store: ObjectStore, manifest: Manifest) -> Manifest:
    """Store a manifest as the version after its own, and return it with its new number.

    When this returns, it is durable, it was read back, and nobody had put a later one. A repetition after an error
    of which the outcome is not known is harmless: finds it what it was about to put, it goes on.

    Args:
        store: Where.
        manifest: `version` is the newest one known (0: none), `leader_epoch` the writer's.

    Raises:
        FencedError: A leader of a larger epoch has written.
        ManifestMovedError: Another writer was faster; or this one itself, in an attempt that seemed to fail.
        RemoteStoreError: The store fails: whether the manifest is there is not known.
    """
    partition = manifest.topic_id_partition
    following = attrs.evolve(manifest, version=manifest.version + 1)
    name, data = manifest_name(partition, following.version), encode_manifest(following)
    is_first = True
    try:
        store.create(name, data)
    except ObjectExistsError:
        is_first = False
    versions = stored_versions(store, partition)
    if versions and versions[-1] > following.version:
        raise _overtaken(store, following, versions[-1])
    if _read(store, name) != data:
        if not is_first:
            raise _overtaken(store, following, following.version)
        store.put(name, data)  # it was damaged on its way: this version is ours, and nobody can have read it
        if _read(store, name) != data:
            raise CorruptDocumentError(f"{name} in {store.url} does not read back as it was put")
    _remove_old(store, partition, versions)
    return following


def _read(store: ObjectStore, name: str) -> bytes:
    try:
        return store.get(name)
    except ObjectMissingError as exc:
        raise ManifestMovedError(f"{name} was removed from {store.url} while it was the newest manifest") from exc


def _overtaken(store: ObjectStore, manifest: Manifest, version: int) -> RemoteStoreError:
    """Return what to tell a writer who finds `version` of another one."""
    partition = manifest.topic_id_partition
    try:
        other = load_version(store, partition, version)
    except ObjectMissingError:
        return ManifestMovedError(f"the manifest of {partition} in {store.url} is being changed by another writer")
    if other.leader_epoch > manifest.leader_epoch:
        return _fenced(store, other, manifest.leader_epoch)
    return ManifestMovedError(f"{_told_of(store, other)} {other.leader_epoch}, which this broker did not know")


def _remove_old(store: ObjectStore, partition: TopicIdPartition, versions: list[int]) -> None:
    for version in versions[:-KEPT_VERSIONS]:
        try:
            store.delete(manifest_name(partition, version))
        except RemoteStoreError:
            return  # the manifest was put all the same; whoever puts the next one tries again


def take_over(store: ObjectStore, partition: TopicIdPartition, *, cluster_id: str, leader_epoch: int) -> Manifest:
    """Begin to lead a partition: return its newest manifest, stored under this leader's epoch.

    From then on no earlier leader changes anything. Of a partition that has none, one without segments and with
    version 0 comes back, and nothing is stored.

    Raises:
        FencedError: A leader of a larger epoch was there.
        RemoteStoreError: The store fails, or what is there cannot be read (`documents`).
    """
    for _ in range(_ATTEMPTS):
        newest = load_to_change(store, partition, leader_epoch)
        if newest is None:
            return new_manifest(partition, cluster_id=cluster_id, leader_epoch=leader_epoch)
        if newest.leader_epoch == leader_epoch:
            return newest
        try:
            return put_next(store, newest.with_leader_epoch(leader_epoch))
        except ManifestMovedError:
            continue
    raise ManifestMovedError(f"the manifest of {partition} in {store.url} changes faster than it can be taken over")
