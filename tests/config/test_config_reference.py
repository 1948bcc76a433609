"""The reference page, and that it tells the truth about what is read."""

from __future__ import annotations

from pathlib import Path

from odradek.kernel.config.keys import Scope
from odradek.kernel.config.reference import render_key, render_page
from odradek.kernel.config.registry import builtin_registry

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "configuration.md"


def test_the_reference_page_is_fresh() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == render_page(builtin_registry()), (
        "run: python -m odradek.kernel.config.reference > docs/reference/configuration.md"
    )


def test_the_reference_page_names_every_key() -> None:
    page = PAGE.read_text(encoding="utf-8")
    missing = [
        key.name
        for known in builtin_registry().keys.values()
        for key in known.values()
        if not key.is_internal and f"| `{key.name}` |" not in page
    ]

    assert missing == []


READ_BY_CONFIG_ITSELF = {
    "advertised.listeners",
    "controller.listener.names",
    "listener.security.protocol.map",
    "log.dir",
    "max.connections.per.ip.overrides",
    "metadata.log.dir",
    "process.roles",
    "internal.segment.bytes",
}
NOT_READ_YET = {
    # Take a line out when it is read; a key that nobody will read is refused, or belongs to a part that is not built.
    "log.flush.start.offset.checkpoint.interval.ms",
}


def test_every_key_of_a_part_that_stands_is_read_somewhere() -> None:
    registry = builtin_registry()
    folders = [path for path in (ROOT / "kernel").iterdir() if path.name != "config"] + [ROOT / "plugins"]
    files = [file for folder in folders for file in ([folder] if folder.suffix == ".py" else folder.rglob("*.py"))]
    sources = "\n".join(file.read_text(encoding="utf-8") for file in files)
    topics = registry.keys[Scope.TOPIC].values()
    stand_in = {name for key in topics for name in key.synonyms}
    keys = [key for key in (*registry.keys[Scope.BROKER].values(), *topics) if key.part.stands]
    unread = {
        key.name
        for key in keys
        if not key.refused_because
        and key.name not in stand_in
        and f'"{key.name}"' not in sources
        and not (key.scope is Scope.TOPIC and key.name.replace(".", "_") in sources)
    }

    assert unread - READ_BY_CONFIG_ITSELF - NOT_READ_YET == set()


def test_a_key_is_told_on_the_terminal_with_its_facts() -> None:
    registry = builtin_registry()

    assert render_key(registry.get(Scope.BROKER, "num.partitions")) == (
        "num.partitions (broker)\n"
        "    int, default 1, valid [1,...], medium importance\n"
        "    Partitions of a topic that is created without saying how many."
    )
    assert render_key(registry.get(Scope.TOPIC, "retention.ms")).endswith(
        "    Taken with a warning: it belongs to retention and compaction, which are not built yet."
    )
