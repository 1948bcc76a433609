"""The real machine: what tells one life of its kernel from the next."""

from pathlib import Path
from uuid import UUID

import pytest

from odradek.kernel.machine.system.machine import boot_id


def test_the_life_of_the_kernel_has_an_id(tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("3b9d5b52-6f0b-4d5c-9a07-0c5f2d3a7c11\n")

    assert boot_id(tmp_path / "boot_id") == UUID("3b9d5b52-6f0b-4d5c-9a07-0c5f2d3a7c11")


@pytest.mark.parametrize("content", [None, "", "no id"])
def test_where_no_id_is_told_none_is_known(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "boot_id").write_text(content)

    assert boot_id(tmp_path / "boot_id") is None
