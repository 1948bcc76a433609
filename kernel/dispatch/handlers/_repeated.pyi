"""Pure core: the compiled twin of a function of `repeated_produce.py`; may be missing."""

from ..repeated_produce import RepeatedProduce

def find_repeated(
    known: dict[bytes, RepeatedProduce], frame: memoryview, has_topic_id: bool, client_id_size: int, /
) -> tuple[RepeatedProduce, memoryview] | None: ...
