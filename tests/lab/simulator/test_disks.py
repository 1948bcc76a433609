"""The scenario `disks`: what rots is found, and never read as something else; what fails loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from odradek.client import fetched_records
from odradek.lab.simulator.disks import DISKS
from odradek.lab.simulator.files import Files
from odradek.lab.simulator.runs import run_seed
from odradek.plugins.storage_segment.segment import Segment


def look_at_no_checksums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what was read for what was written, in the consumer and in recovery."""
    monkeypatch.setattr(fetched_records, "is_crc_valid", lambda *_: True)
    monkeypatch.setattr(Segment, "_is_sound", lambda *_: True)


def heed_no_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what was not written for written."""
    write = Files.pwritev

    def write_or_not(self: Files, fd: int, buffers: list[bytes], position: int) -> int:
        try:
            return write(self, fd, buffers, position)
        except OSError:
            return sum(map(len, buffers))

    monkeypatch.setattr(Files, "pwritev", write_or_not)


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("sabotage", "seeds"), [(look_at_no_checksums, (6, *range(1, 11))), (heed_no_errors, range(1, 11))]
)
def test_sabotage_is_found_within_so_many_seeds(
    sabotage: Callable[[pytest.MonkeyPatch], None], seeds: Iterable[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)

    assert any(run_seed(DISKS, seed, {}).failure for seed in seeds)
