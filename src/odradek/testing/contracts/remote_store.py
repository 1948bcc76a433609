"""Shell: the contract kit of object stores.

::

    class TestMyStore(ObjectStoreContract):
        def open_store(self) -> ObjectStore:
            return MyStore(...)

`open_store` is called more than once in a test: every call opens the same objects, and each test begins with none.
Needs pytest. Each test's name is the promise it checks.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.contracts.remote_store import ObjectExistsError, ObjectMissingError

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.kernel.contracts.remote_store import ObjectStore
    from odradek.kernel.types import Buffer

LARGE_BYTES = 20 << 20
"""A file that stores take in several parts."""

THREADS = 8


def names_of(store: ObjectStore, prefix: str = "") -> list[str]:
    """Return the names below a prefix, in order."""
    return sorted(info.name for info in store.list(prefix))


class ObjectStoreContract:
    """What every `ObjectStore` does."""

    def open_store(self) -> ObjectStore:
        """Open the store of this test."""
        raise NotImplementedError

    # -- put and get ---------------------------------------------------------------------------------------------

    def test_what_was_put_is_got(self) -> None:
        store = self.open_store()
        for data in (b"", b"x", bytes(range(256)) * 300):
            store.put(f"a/{len(data)}.log", data)

            assert store.get(f"a/{len(data)}.log") == data
            assert store.size(f"a/{len(data)}.log") == len(data)

    def test_any_buffer_may_be_put(self) -> None:
        store = self.open_store()
        buffers: tuple[Buffer, ...] = bytearray(b"abc"), memoryview(b"xabcx")[1:4]
        for number, data in enumerate(buffers):
            store.put(f"put {number}", data)
            store.create(f"created {number}", data)

            assert (store.get(f"put {number}"), store.get(f"created {number}")) == (b"abc", b"abc")

    def test_a_second_put_takes_the_place_of_the_first(self) -> None:
        store = self.open_store()
        store.put("a", b"a longer first one")
        store.put("a", b"second")

        assert store.get("a") == b"second"
        assert names_of(store) == ["a"]

    def test_a_file_is_put_as_its_bytes_are(self, tmp_path: Path) -> None:
        store, path = self.open_store(), tmp_path / "file"
        for size in (0, 1000, LARGE_BYTES + 7):
            path.write_bytes((bytes(range(251)) * (size // 251 + 1))[:size])
            store.put(f"a/{size}", path)

            assert store.size(f"a/{size}") == size
            assert store.get(f"a/{size}") == path.read_bytes()

    def test_a_file_that_is_not_there_is_told_as_such_and_leaves_no_object(self, tmp_path: Path) -> None:
        store = self.open_store()
        with pytest.raises(FileNotFoundError):
            store.put("a", tmp_path / "missing")

        assert names_of(store) == []

    def test_a_range_is_got_as_far_as_the_object_reaches(self) -> None:
        store, data = self.open_store(), b"0123456789"
        store.put("a", data)
        for start in (0, 4, 8, 10, 99):
            for size in (0, 1, 4, 10, 99):
                assert store.get("a", start, size) == data[start : start + size]
            assert store.get("a", start) == data[start:]

    def test_a_range_of_an_empty_object_is_empty(self) -> None:
        store = self.open_store()
        store.put("a", b"")

        assert [store.get("a"), store.get("a", 0, 4), store.get("a", 1)] == [b"", b"", b""]

    def test_nothing_is_got_of_what_is_missing(self) -> None:
        store = self.open_store()
        store.put("a/b", b"x")
        for name in ("a", "b", "a/b/c", "a/bb"):
            for start, size in ((0, None), (0, 4), (3, None), (0, 0)):
                with pytest.raises(ObjectMissingError):
                    store.get(name, start, size)

    def test_what_is_missing_has_no_size(self) -> None:
        store = self.open_store()
        with pytest.raises(ObjectMissingError):
            store.size("a/b")

    def test_what_one_put_another_sees(self) -> None:
        self.open_store().put("a/b", b"x")

        assert self.open_store().get("a/b") == b"x"
        assert names_of(self.open_store(), "a/") == ["a/b"]

    # -- create --------------------------------------------------------------------------------------------------

    def test_what_is_created_is_got(self) -> None:
        store = self.open_store()
        store.create("a/b", b"x")

        assert store.get("a/b") == b"x"

    def test_what_is_there_is_not_created_and_not_changed(self) -> None:
        store = self.open_store()
        store.create("a/b", b"first")
        store.put("c", b"put")

        for name in ("a/b", "c"):
            with pytest.raises(ObjectExistsError):
                store.create(name, b"second")
        assert (store.get("a/b"), store.get("c")) == (b"first", b"put")
        assert names_of(store) == ["a/b", "c"]

    def test_what_was_deleted_may_be_created_again(self) -> None:
        store = self.open_store()
        store.create("a", b"first")
        store.delete("a")
        store.create("a", b"second")

        assert store.get("a") == b"second"

    def test_of_many_who_create_at_once_one_succeeds(self) -> None:
        stores = [self.open_store() for _ in range(THREADS)]
        barrier = threading.Barrier(THREADS)

        def create(number: int, name: str) -> int | None:
            barrier.wait(30)
            try:
                stores[number].create(name, b"%d" % number)
            except ObjectExistsError:
                return None
            return number

        with ThreadPoolExecutor(THREADS) as threads:
            for name in ("a/1", "a/2", "a/3"):
                winners = [n for n in threads.map(create, range(THREADS), [name] * THREADS) if n is not None]

                assert len(winners) == 1
                assert stores[0].get(name) == b"%d" % winners[0]

    # -- list and delete -----------------------------------------------------------------------------------------

    def test_a_list_tells_names_below_a_prefix_and_sizes(self) -> None:
        store = self.open_store()
        for name in ("a/1", "a/b/2", "ab/3", "c"):
            store.put(name, name.encode())

        assert names_of(store) == ["a/1", "a/b/2", "ab/3", "c"]
        assert names_of(store, "a/") == ["a/1", "a/b/2"]
        assert names_of(store, "a/b/") == ["a/b/2"]
        assert names_of(store, "x/") == []
        assert {info.name: info.size_bytes for info in store.list("a/")} == {"a/1": 3, "a/b/2": 5}

    def test_a_list_is_complete_when_it_is_long(self) -> None:
        store = self.open_store()
        names = [f"a/{number:04}" for number in range(1100)]
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(store.put, names, [b"x"] * len(names)))

        assert names_of(store, "a/") == names

    def test_what_is_put_later_is_not_older(self) -> None:
        store = self.open_store()
        store.put("a/1", b"x")
        store.put("a/2", b"x")
        modified_ms = {info.name: info.modified_ms for info in store.list("a/")}

        assert modified_ms["a/1"] <= modified_ms["a/2"]

    def test_what_was_deleted_is_gone(self) -> None:
        store = self.open_store()
        store.put("a/1", b"x")
        store.put("a/2", b"x")
        store.delete("a/1")

        assert names_of(store) == ["a/2"]
        with pytest.raises(ObjectMissingError):
            store.get("a/1")

    def test_what_is_not_there_may_be_deleted(self) -> None:
        store = self.open_store()
        store.put("a/1", b"x")
        for name in ("a/2", "b/c/d", "a"):
            store.delete(name)

        assert names_of(store) == ["a/1"]

    def test_a_name_may_hold_what_topics_and_ids_are_made_of(self) -> None:
        store = self.open_store()
        topic, topic_id = "Orders_eu.west-1" + "x" * 233, "-_Az09" + "A" * 16
        name = f"topics/{topic}/{topic_id}/0/segments/{0:020d}-{topic_id}.log"
        store.put(name, b"x")

        assert names_of(store, f"topics/{topic}/{topic_id}/") == [name]
        assert store.get(name) == b"x"

    # -- many at once --------------------------------------------------------------------------------------------

    def test_threads_do_not_disturb_each_other(self) -> None:
        store = self.open_store()

        def work(number: int) -> None:
            for step in range(5):
                name, data = f"{number}/{step}", f"{number} {step} ".encode() * 1000
                store.put(name, data)
                assert store.get(name) == data
                assert store.get(name, 10, 10) == data[10:20]
                if step % 2:
                    store.delete(name)

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(work, range(THREADS)))

        assert names_of(store) == [f"{number}/{step}" for number in range(THREADS) for step in (0, 2, 4)]
