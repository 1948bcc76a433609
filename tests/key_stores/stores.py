"""The golden stores, and what keytool says of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

GOLDEN: Final = Path(__file__).parent / "golden"
PASSWORD: Final = "changeit"
KEY_PASSWORD: Final = "open-sesame"


def golden(name: str) -> bytes:
    """Return the bytes of a store."""
    return (GOLDEN / name).read_bytes()


def fingerprints(certificates: Iterable[bytes]) -> list[str]:
    """Return the SHA-256 of certificates, as keytool writes them."""
    return [hashlib.sha256(one).digest().hex(":").upper() for one in certificates]


def told_by_keytool(name: str) -> list[str]:
    """Return the fingerprints that keytool printed of a store's certificates, in its order."""
    found: list[str] = []
    is_ours = False
    for line in (GOLDEN / "stores.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            is_ours = line == f"== {name}"
        elif is_ours and "SHA256: " in line:
            found.append(line.partition("SHA256: ")[2].strip())
    assert found, name
    return found
