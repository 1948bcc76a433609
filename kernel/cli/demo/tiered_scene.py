"""Shell: what the chapters about tiered storage share: the broker, the data set, and where segments lie."""

from __future__ import annotations

import io
import json
import time
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from .data import segments_of
from .log_chapters import dump

if TYPE_CHECKING:
    from pathlib import Path

    from .broker_process import BrokerProcess
    from .data import DemoRecord
    from .stage import Stage


class PlacedSegment(NamedTuple):
    """A segment, and where it lies; `object_name` is empty for one on disk, `records_count` -1 where not counted."""

    base_offset: int
    size_bytes: int
    object_name: str
    records_count: int

    @property
    def is_remote(self) -> bool:
        """Whether it lies in the store."""
        return bool(self.object_name)


@attrs.define
class TieredScene:
    """One run; each chapter finds here what those before it left.

    Attributes:
        stage: Where it is shown.
        broker: The broker's process.
        data_dir: Where it keeps its logs.
        store_url: The object store.
        now_s: Seconds since the Unix epoch: changes of clocks after this are left out.
        bootstrap: Where the broker serves; empty until it does.
        records: The data set, in the order in which it is produced.
    """

    stage: Stage
    broker: BrokerProcess
    data_dir: Path
    store_url: str
    now_s: int
    bootstrap: str = ""
    records: list[DemoRecord] = attrs.field(factory=list)

    def start_broker(self) -> float:
        """Start the broker, and return how many seconds that took."""
        began = time.perf_counter()
        self.bootstrap = self.broker.start()
        return time.perf_counter() - began

    def local_segments(self, topic: str) -> list[PlacedSegment]:
        """Return the segments on disk, as `odradek log dump` sees them, without those that are about to be removed."""
        directory = self.data_dir / f"{topic}-0"
        segments, _damaged = segments_of(dump(directory))
        return [
            PlacedSegment(int(each.name), each.size_bytes, "", each.records_count)
            for each in segments
            if (directory / f"{each.name}.log").exists()
        ]

    def remote_segments(self, topic: str) -> list[PlacedSegment]:
        """Return the segments in the store, as `odradek tiered verify` sees them."""
        return [
            PlacedSegment(each["base_offset"], each["size_bytes"], each["object"], -1)
            for partition in self.verified("--sizes-only", "--topic", topic)["partitions"]
            for each in partition.get("listing", ())
        ]

    def verified(self, *options: str) -> dict[str, Any]:
        """Return what `odradek tiered verify`, a command that the plugin brings, says of the store."""
        from .. import main

        said = io.StringIO()
        with redirect_stdout(said):
            main(["tiered", "verify", "--store", self.store_url, "--json", *options])
        report: dict[str, Any] = json.loads(said.getvalue())
        return report
