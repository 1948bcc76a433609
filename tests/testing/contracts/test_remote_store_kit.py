"""The kit of object stores itself: a broken store is found, and every test of the kit finds at least one."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from odradek.kernel.api import Buffer, ObjectExistsError, ObjectInfo, ObjectStore
from odradek.testing.contracts.remote_store import ObjectStoreContract
from odradek.testing.object_stores import MemoryObjectStore

TESTS = [name for name, _ in inspect.getmembers(ObjectStoreContract, inspect.isfunction) if name.startswith("test_")]


class Broken(MemoryObjectStore):
    """What a careless author might write; each subclass is one mistake."""

    expected: Sequence[str] = ()


class ForgetsTheLastByte(Broken):
    expected = (
        "test_what_was_put_is_got",
        "test_what_one_put_another_sees",
        "test_a_second_put_takes_the_place_of_the_first",
        "test_threads_do_not_disturb_each_other",
        "test_a_name_may_hold_what_topics_and_ids_are_made_of",
    )

    def put(self, name: str, data: Buffer | Path) -> None:
        super().put(name, data if isinstance(data, Path) else bytes(data)[:-1])


class TakesOnlyBytes(Broken):
    expected = ("test_any_buffer_may_be_put",)

    def put(self, name: str, data: Buffer | Path) -> None:
        assert isinstance(data, bytes | Path)
        super().put(name, data)


class SendsOnePartOfAFile(Broken):
    expected = ("test_a_file_is_put_as_its_bytes_are",)

    def put(self, name: str, data: Buffer | Path) -> None:
        super().put(name, data.read_bytes()[: 8 << 20] if isinstance(data, Path) else data)


class LeavesAnEmptyObject(Broken):
    expected = ("test_a_file_that_is_not_there_is_told_as_such_and_leaves_no_object",)

    def put(self, name: str, data: Buffer | Path) -> None:
        super().put(name, b"")
        super().put(name, data)


class CountsFromTheStart(Broken):
    expected = ("test_a_range_is_got_as_far_as_the_object_reaches",)

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        return super().get(name)[start:size]


class RefusesRangesBehindTheEnd(Broken):
    expected = ("test_a_range_of_an_empty_object_is_empty",)

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        found = super().get(name)
        assert start == 0 or start < len(found), "416"
        return found[start:] if size is None else found[start : start + size]


class GivesNothingForWhatIsMissing(Broken):
    expected = ("test_nothing_is_got_of_what_is_missing", "test_what_was_deleted_is_gone")

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        return super().get(name, start, size) if name in self.objects else b""


class HasASizeForEverything(Broken):
    expected = ("test_what_is_missing_has_no_size",)

    def size(self, name: str) -> int:
        return super().size(name) if name in self.objects else 0


class CreatesOver(Broken):
    expected = ("test_what_is_there_is_not_created_and_not_changed",)

    def create(self, name: str, data: Buffer) -> None:
        self.put(name, data)


class CreatesNothing(Broken):
    expected = ("test_what_is_created_is_got",)

    def create(self, name: str, data: Buffer) -> None:
        self.size(name)


class NeverForgetsANameItCreated(Broken):
    expected = ("test_what_was_deleted_may_be_created_again",)

    def __init__(self) -> None:
        super().__init__()
        self.created: set[str] = set()

    def create(self, name: str, data: Buffer) -> None:
        if name in self.created:
            raise ObjectExistsError(name)
        self.created.add(name)
        super().create(name, data)


class LooksBeforeItCreates(Broken):
    """Two steps in which another one may come between: here all of them do."""

    expected = ("test_of_many_who_create_at_once_one_succeeds",)

    def __init__(self) -> None:
        super().__init__()
        self.barrier = threading.Barrier(8)

    def create(self, name: str, data: Buffer) -> None:
        if name in self.objects:
            raise ObjectExistsError(name)
        self.barrier.wait(30)
        self.put(name, data)


class TakesPrefixesByLetters(Broken):
    expected = ("test_a_list_tells_names_below_a_prefix_and_sizes",)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return super().list(prefix.rstrip("/"))


class ListsOnePage(Broken):
    expected = ("test_a_list_is_complete_when_it_is_long",)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return (info for info, _ in zip(super().list(prefix), range(1000), strict=False))


class GoesBackInTime(Broken):
    expected = ("test_what_is_put_later_is_not_older",)

    def put(self, name: str, data: Buffer | Path) -> None:
        self.now_ms -= 1
        super().put(name, data)


class DeletesWhatLiesBeside(Broken):
    expected = ("test_what_was_deleted_is_gone",)

    def delete(self, name: str) -> None:
        for info in list(self.list(name.rpartition("/")[0])):
            super().delete(info.name)


class MissesWhatItShallDelete(Broken):
    expected = ("test_what_is_not_there_may_be_deleted",)

    def delete(self, name: str) -> None:
        self.size(name)
        super().delete(name)


class CutsNames(Broken):
    expected = ("test_a_name_may_hold_what_topics_and_ids_are_made_of",)

    def put(self, name: str, data: Buffer | Path) -> None:
        super().put(name[:255], data)


BROKEN = Broken.__subclasses__()


def contract_of(make: type[MemoryObjectStore]) -> ObjectStoreContract:
    store = make()

    class Contract(ObjectStoreContract):
        def open_store(self) -> ObjectStore:
            return store

    return Contract()


def run(contract: ObjectStoreContract, name: str, tmp_path: Path) -> None:
    test = getattr(contract, name)
    test(*[tmp_path] * len(inspect.signature(test).parameters))


@pytest.mark.parametrize("name", TESTS)
def test_a_good_store_passes(name: str, tmp_path: Path) -> None:
    run(contract_of(MemoryObjectStore), name, tmp_path)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_store_is_found(broken: type[Broken], tmp_path: Path) -> None:
    for name in broken.expected:
        with pytest.raises((Exception, pytest.fail.Exception)):
            run(contract_of(broken), name, tmp_path)


def test_two_who_open_a_store_have_to_see_the_same(tmp_path: Path) -> None:
    class Contract(ObjectStoreContract):
        def open_store(self) -> ObjectStore:
            return MemoryObjectStore()

    with pytest.raises(Exception, match="there is no a/b"):
        run(Contract(), "test_what_one_put_another_sees", tmp_path)


def test_every_test_of_the_kit_finds_something() -> None:
    found = {name for broken in BROKEN for name in broken.expected}

    assert sorted(set(TESTS) - found) == []
