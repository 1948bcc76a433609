"""Storage in memory keeps the contract, and what is its own."""

from pathlib import Path

import pytest

from odradek.kernel.api import LogConfig, StorageContext, StorageEngine, StorageError
from odradek.plugins import storage_memory
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.testing.contracts.storage import StorageContract
from odradek.testing.contracts.storage_base import PARTITION, make_context


class TestMemoryEngine(StorageContract):
    is_durable = False
    recovers = False

    def make_engine(self, context: StorageContext) -> StorageEngine:
        return MemoryEngine(context)


def test_the_plugin_offers_memory() -> None:
    assert list(storage_memory.odradek_storages()) == ["memory"]


def test_what_needs_a_directory_is_refused(tmp_path: Path) -> None:
    engine = MemoryEngine(make_context(tmp_path))
    for call in (
        lambda: engine.begin_move(PARTITION, "elsewhere"),
        lambda: engine.find_logs("elsewhere"),
        lambda: engine.begin_adoption(PARTITION, "elsewhere"),
    ):
        with pytest.raises(StorageError):
            call()

    assert (engine.log_dirs(), list(tmp_path.iterdir())) == ((), [])


def test_a_missing_small_file_is_told(tmp_path: Path) -> None:
    log = MemoryEngine(make_context(tmp_path)).open_log(PARTITION, LogConfig())
    with pytest.raises(StorageError, match="no snapshot at 4"):
        log.read_sidecar(4, "snapshot")
