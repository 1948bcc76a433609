"""Every assignor of the plugin passes the contract kit."""

from __future__ import annotations

from odradek.kernel.api import Assignor
from odradek.plugins.assignors import odradek_assignors
from odradek.testing.contracts.assignor import AssignorContract


class TestRange(AssignorContract):
    is_balanced = False  # by topic, but not over several
    is_sticky = False

    def make_assignor(self) -> Assignor:
        return odradek_assignors()["range"]


class TestRoundRobin(AssignorContract):
    is_sticky = False

    def make_assignor(self) -> Assignor:
        return odradek_assignors()["roundrobin"]


class TestSticky(AssignorContract):
    def make_assignor(self) -> Assignor:
        return odradek_assignors()["sticky"]


class TestCooperativeSticky(AssignorContract):
    def make_assignor(self) -> Assignor:
        return odradek_assignors()["cooperative-sticky"]


class TestUniform(AssignorContract):
    def make_assignor(self) -> Assignor:
        return odradek_assignors()["uniform"]
