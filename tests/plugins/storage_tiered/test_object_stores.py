"""Each kind of store keeps the contract, durably and in bounded memory."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.api import ConfigError, ObjectMissingError, StoreRefusedError, StoreUnavailableError
from odradek.plugins.storage_tiered.folder_store import UPLOADS_FOLDER, FolderStore
from odradek.plugins.storage_tiered.store_settings import StoreSettings
from odradek.plugins.storage_tiered.stores import open_store
from odradek.testing.contracts.remote_store import ObjectStoreContract, names_of
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore

if TYPE_CHECKING:
    from odradek.kernel.api import ObjectStore
    from tests.plugins.storage_tiered.s3 import S3Server


numbers = itertools.count()


class TestTheMemoryOfTests(ObjectStoreContract):
    @pytest.fixture(autouse=True)
    def begin(self) -> None:
        self.store = MemoryObjectStore()

    def open_store(self) -> ObjectStore:
        return self.store


class TestAFaultyStoreWithoutFaults(TestTheMemoryOfTests):
    def open_store(self) -> ObjectStore:
        return FaultyObjectStore(self.store)


class TestAFolder(ObjectStoreContract):
    @pytest.fixture(autouse=True)
    def begin(self, tmp_path: Path) -> None:
        self.url = (tmp_path / "a folder").as_uri()

    def open_store(self) -> ObjectStore:
        return open_store(self.url)


class TestMemory(ObjectStoreContract):
    @pytest.fixture(autouse=True)
    def begin(self) -> None:
        self.url = f"memory://{next(numbers)}/a/prefix"

    def open_store(self) -> ObjectStore:
        return open_store(self.url)


@pytest.mark.interop
class TestS3(ObjectStoreContract):
    @pytest.fixture(autouse=True)
    def begin(self, s3: S3Server) -> None:
        self.url, self.settings = f"s3://{s3.new_bucket()}/some/prefix", s3.settings

    def open_store(self) -> ObjectStore:
        return open_store(self.url, self.settings)


def test_a_prefix_hides_what_lies_beside_it() -> None:
    name = next(numbers)
    for place in ("a", "ab", "a/b"):
        open_store(f"memory://{name}/{place}").put("x", place.encode())

    assert names_of(open_store(f"memory://{name}/a")) == ["b/x", "x"]
    assert open_store(f"memory://{name}/a").get("x") == b"a"


def test_a_folder_syncs_files_and_directories_before_it_says_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").readlink().relative_to(tmp_path).as_posix())
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    FolderStore(tmp_path).put("a/b/c", b"x")

    assert synced[0].startswith(UPLOADS_FOLDER)
    assert synced[1:] == [".", "a", "a/b"]


def test_what_a_crash_left_of_an_upload_is_no_object(tmp_path: Path) -> None:
    (tmp_path / UPLOADS_FOLDER).mkdir()
    (tmp_path / UPLOADS_FOLDER / "1-1").write_bytes(b"half")

    assert names_of(FolderStore(tmp_path)) == []


def test_a_full_disk_is_told_as_such_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StoreUnavailableError, match="the disk is full"):
        FolderStore(tmp_path).put("a", b"x")

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_that_a_delete_takes_away_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, real, left = FolderStore(tmp_path), os.link, [2]

    def link(source: Path, target: Path) -> None:
        if left[0]:
            left[0] -= 1
            target.parent.rmdir()
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    store.create("a/b", b"x")
    left[0] = 99

    assert store.get("a/b") == b"x"
    with pytest.raises(StoreUnavailableError):
        store.create("c/d", b"x")


def test_a_folder_is_no_object(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("a/b", b"x")

    with pytest.raises(ObjectMissingError):
        store.size("a")


def test_a_failing_put_leaves_no_file_behind(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("a", b"x")
    with pytest.raises(StoreRefusedError):
        store.put("a/b", b"below a file")

    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a"]


def test_a_folder_that_is_not_there_is_refused_and_not_made_anew(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "mount" / "bucket")
    for operation in (
        lambda: store.put("a", b"x"),
        lambda: store.create("a", b"x"),
        lambda: store.get("a"),
        lambda: store.size("a"),
        lambda: list(store.list("")),
        lambda: store.delete("a"),
    ):
        with pytest.raises(StoreRefusedError, match="mount its disk"):
            operation()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://bucket", "is no URL of a store"),
        ("s3://[bucket", "cannot be read"),
        ("bucket", "is no URL of a store"),
        ("s3://", "names no bucket"),
        ("file://folder", "names no folder"),
        ("file:///", "names no folder"),
        ("s3://key:secret@bucket/prefix", "credentials come from environment variables"),
        ("s3://bucket/prefix?region=x", "says more than a place"),
    ],
)
def test_a_wrong_url_is_told_and_its_secrets_are_not(url: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        open_store(url)

    assert "secret" not in str(caught.value).replace("secrets", "")


def test_a_setting_that_means_nothing_for_a_store_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"odradek\.tiered\.store\.account\.key is set, and means nothing"):
        open_store("s3://bucket", StoreSettings(options={"account_key": "x", "region": ""}))


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("gs://bucket/prefix", {}),
        ("az://container/prefix", {"account_name": "someone", "account_key": "eA=="}),
        ("s3://bucket/prefix", {"region": "eu-west-1"}),
    ],
)
def test_a_store_is_opened_without_being_asked(url: str, options: dict[str, str]) -> None:
    assert open_store(url, StoreSettings(options=options)).url == url


@pytest.mark.parametrize(
    ("url", "options", "told"),
    [
        ("az://container", {}, "Account must be specified"),
        ("gs://bucket", {"service_account": "/missing.json"}, "/missing.json"),
    ],
)
def test_what_cannot_be_opened_is_told_at_once(url: str, options: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=f"^odradek.tiered.store: the store cannot be opened: .*{told}"):
        open_store(url, StoreSettings(options=options))
