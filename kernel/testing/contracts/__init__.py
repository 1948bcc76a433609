"""Contract kits: classes of ordinary pytest tests that every implementation of a contract subclasses and passes.

::

    class TestMyEngine(StorageContract):
        def make_engine(self, context: StorageContext) -> StorageEngine:
            return MyEngine(context)
"""
