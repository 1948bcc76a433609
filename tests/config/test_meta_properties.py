"""Whose a directory is: written as Kafka writes it, read in both of its versions."""

from __future__ import annotations

from uuid import UUID

import pytest

from odradek.kernel.config.meta_properties import MetaProperties, decode_meta_properties, encode_meta_properties
from odradek.kernel.errors import CorruptionError
from odradek.kernel.types import ZERO_ID

META = MetaProperties("ABCDEFGHIJKLMNOPQRSTUw", 1, UUID(int=1))


def test_a_directory_says_whose_it_is_with_and_without_a_cluster() -> None:
    for meta in (META, META._replace(cluster_id="")):
        assert decode_meta_properties(encode_meta_properties(meta)) == meta


def test_what_kafkas_tool_wrote_is_read() -> None:
    """By Apache Kafka 4.3.1: `kafka-storage format --initial-controllers`."""
    text = (
        "#\n#Thu Nov 26 01:40:51 UTC 2026\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\nversion=1\n"
        "cluster.id=ABCDEFGHIJKLMNOPQRSTUw\n"
    )

    assert decode_meta_properties(text.encode()) == META
    assert decode_meta_properties(b"version=0\nbroker.id=7\n") == MetaProperties("", 7, ZERO_ID)


@pytest.mark.parametrize("data", [b"", b"node.id=1\n", b"version=2\n", b"version=1\ndirectory.id=AA\n", b"\xff"])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptionError, match=r"meta\.properties"):
        decode_meta_properties(data)
