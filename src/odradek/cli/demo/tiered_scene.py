"""Shell: what the chapters about tiered storage share: the broker, the data set, and where segments lie."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import attrs

from .data import segments_of
from .log_chapters import dump
from .scene import Scene


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
class TieredScene(Scene):
    """One run; each chapter finds here what those before it left.

    Attributes:
        store_url: The object store.
    """

    store_url: str = attrs.field(kw_only=True)

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
