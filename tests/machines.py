"""Machines of tests: the real one, with some parts exchanged."""

from __future__ import annotations

from typing import Any

import attrs

from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.machine.machine import Machine, real_machine


def machine_with(**parts: Any) -> Machine:
    """Return the real machine with other parts, named as `Machine` names them; ids follow another `random`."""
    if "random" in parts:
        parts.setdefault("ids", RandomIds(parts["random"]))
    return attrs.evolve(real_machine(), **parts)
