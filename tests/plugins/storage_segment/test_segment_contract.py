"""Storage in segment files keeps the contract."""

from odradek.kernel.api import StorageContext, StorageEngine
from odradek.plugins import storage_segment
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage import StorageContract


class TestSegmentEngine(StorageContract):
    def make_engine(self, context: StorageContext) -> StorageEngine:
        return SegmentEngine(context)

    def crash(self, engine: StorageEngine) -> None:
        assert isinstance(engine, SegmentEngine)
        engine.abandon()


def test_the_plugin_offers_segment() -> None:
    assert list(storage_segment.odradek_storages()) == ["segment"]
