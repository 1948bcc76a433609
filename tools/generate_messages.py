"""Writes `kernel/wire/messages/` from the message definitions that Apache Kafka ships inside its jars.

    python tools/generate_messages.py kafka-clients-4.3.1.jar kafka-*-coordinator-4.3.1.jar

Takes the facts (names, types, versions, defaults) and none of the sentences. Run it for a new version of Kafka, look
at the difference, format with ruff, run the tests of `tests/wire`. What is written is source like any other: it may
be changed by hand.
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

from odradek.kernel.wire.versions import NO_VERSIONS, Versions, parse_versions

MESSAGES = Path(__file__).parents[1] / "kernel/wire/messages"
Definition = dict[str, Any]

PLAIN = {"bool": ("boolean", "bool"), "float64": ("float64", "float"), "bytes": ("binary", "bytes")} | {
    kind: (kind, python)
    for kind, python in {
        "int8": "int",
        "int16": "int",
        "uint16": "int",
        "int32": "int",
        "uint32": "int",
        "int64": "int",
        "uuid": "UUID",
        "string": "str",
    }.items()
}
DATA_MODULES = {
    "ConsumerProtocol": "data_consumer_protocol",
    "DefaultPrincipal": "data_principal",
    "ConsumerGroup": "data_consumer_group_records",
    "ShareGroup": "data_share_group_records",
    "StreamsGroup": "data_streams_group_records",
    "GroupMetadata": "data_group_records",
    "OffsetCommit": "data_group_records",
    "LegacyOffsetCommit": "data_group_records",
    "TransactionLog": "data_transaction_records",
    "Share": "data_share_state_records",
    "": "data_control_records",
}
"""The module of a definition that is no request or response, by the beginning of its name; the first that fits."""

DATA_TITLES = {
    "data_consumer_protocol": "what members of a classic group tell each other through the group coordinator",
    "data_principal": "a principal inside an Envelope request",
    "data_control_records": "the values of control records, and the records that begin and end a snapshot",
    "data_consumer_group_records": "records in `__consumer_offsets` of groups of the consumer protocol (KIP-848)",
    "data_share_group_records": "records in `__consumer_offsets` of share groups (KIP-932)",
    "data_streams_group_records": "records in `__consumer_offsets` of streams groups (KIP-1071)",
    "data_group_records": "records in `__consumer_offsets` of committed offsets and of classic groups",
    "data_transaction_records": "records in `__transaction_state`",
    "data_share_state_records": "records in `__share_group_state` (KIP-932)",
}
TITLES = {
    "request": "The request.",
    "response": "The response.",
    "data": "{0}, to be coded by itself.",
    "coordinator-key": "{0}: what a record is about.",
    "coordinator-value": "{0}: what a record says.",
}
SKIPPED = {"QuorumStateData"}  # a file of JSON, not of bytes


def snake(name: str) -> str:
    """Return Kafka's camel case as snake case."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return words.replace("k_raft", "kraft") + ("_" if keyword.iskeyword(words) else "")


def read_definitions(jar: Path) -> list[Definition]:
    """Return every definition in a jar that has a version and is no header."""
    definitions = []
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith("common/message/") and name.endswith(".json"):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                definition = json.loads(text)
                wanted = definition["type"] != "header" and definition["name"] not in SKIPPED
                if wanted and definition["validVersions"] != "none":
                    definitions.append(definition)
    unstable = {d["apiKey"] for d in definitions if d.get("latestVersionUnstable")}
    for definition in definitions:
        definition["latestVersionUnstable"] = definition.get("apiKey") in unstable
    return definitions


def stable(definition: Definition) -> Versions:
    """Return the versions of a definition without one that is still being designed."""
    valid = parse_versions(definition["validVersions"])
    return Versions(valid.lowest, valid.highest - definition["latestVersionUnstable"])


def meet(left: Versions, right: Versions) -> Versions:
    """Return the versions that two ranges share."""
    both = Versions(max(left.lowest, right.lowest), min(left.highest, right.highest))
    return both if both.lowest <= both.highest else NO_VERSIONS


class Writer:
    """Writes the classes of one message, the inner ones first."""

    def __init__(self, definition: Definition, taken: set[str]) -> None:
        self.definition = definition
        self.taken = taken
        self.common = {s["name"]: s for s in definition.get("commonStructs", [])}
        self.classes: list[str] = []
        self.names: dict[str, str] = {}
        self.imports: set[str] = set()

    def write(self) -> list[str]:
        """Return the source of each class."""
        definition, versions = self.definition, stable(self.definition)
        name = definition["name"]
        self.names[name] = name
        key = f"key={definition['apiKey']}, " if "apiKey" in definition else ""
        flexible = "" if definition["flexibleVersions"] == "none" else f', flexible="{definition["flexibleVersions"]}"'
        head = f'class {name}(Message, {key}versions="{versions}"{flexible}):'
        what = TITLES.get(definition["type"], "").format(name)
        self.emit(head, what, definition["fields"], versions, name)
        return self.classes

    def emit(self, head: str, title: str, fields: list[Definition], versions: Versions, owner: str) -> None:
        """Write one class."""
        lines = [head, *textwrap.wrap(f'"""{title}"""', 118, initial_indent="    ", subsequent_indent="    "), ""]
        for field in fields:
            kept = meet(parse_versions(field.get("versions") or field["taggedVersions"]), versions)
            if kept != NO_VERSIONS:
                lines.append("    " + self.field(field, kept, versions, owner))
        self.classes.append("\n".join(lines).rstrip())

    def struct(self, kind: str, field: Definition, versions: Versions, owner: str) -> str:
        """Write the class of a structure, unless it is written, and return its name."""
        if kind in self.names:
            return self.names[kind]
        name = kind
        if name in self.taken:
            kinds = {"request": "Request", "response": "Response"}
            name = kinds.get(str(self.definition["type"]), str(self.definition["name"])) + kind
        self.names[kind] = name
        self.taken.add(name)
        shared = kind in self.common
        fields = self.common[kind]["fields"] if shared else field["fields"]
        item = "An item of" if field["type"].startswith("[]") else "The value of"
        title = (
            f"Shared by several fields of `{self.definition['name']}`."
            if shared
            else f"{item} `{owner}.{snake(field['name'])}`."
        )
        self.emit(f"class {name}(Message):", title, fields, stable(self.definition) if shared else versions, name)
        return name

    def field(self, field: Definition, kept: Versions, versions: Versions, owner: str) -> str:
        """Return the line of one field."""
        kind, item = field["type"], field["type"].removeprefix("[]")
        nullable = meet(parse_versions(field.get("nullableVersions", "none")), kept)
        function, python, first = self.types(kind, item, field, kept, owner)
        arguments = [first] if first else []
        if kept != versions:
            arguments.append(f'"{shown(kept, versions)}"')
        if nullable != NO_VERSIONS:
            arguments.append(f'nullable="{shown(nullable, stable(self.definition))}"')
            python += " | None"
        elif kind[0].isupper() and "tag" in field:
            python += " | None"
        if function != "records":
            arguments += self.default(field, kind)
        if "tag" in field:
            assert field["taggedVersions"] == field.get("versions", field["taggedVersions"]), field
            arguments.append(f"tag={field['tag']}")
        if field.get("ignorable"):
            arguments.append("ignorable=True")
        return f"{snake(field['name'])}: {python} = f.{function}({', '.join(arguments)})"

    def types(self, kind: str, item: str, field: Definition, kept: Versions, owner: str) -> tuple[str, str, str]:
        """Return the function of the notation, the Python type, and the structure's class if there is one."""
        if kind == "records":
            used = "Buffer" if self.definition["type"] == "request" else "Records"
            self.imports.add(used)
            return "records", used, ""
        if item in PLAIN:
            function, python = PLAIN[item]
            if python == "UUID":
                self.imports.add("UUID")
            return (function + "s", f"list[{python}]", "") if kind != item else (function, python, "")
        name = self.struct(item, field, kept, owner)
        return ("array", f"list[{name}]", name) if kind != item else ("struct", name, name)

    def default(self, field: Definition, kind: str) -> list[str]:
        """Return the default, if it is not the type's own."""
        if "default" not in field or (kind[0].isupper() and field["default"] in ("null", None)):
            return []
        text = "null" if field["default"] is None else str(field["default"])
        if text == "null":
            return ["default=None"]
        if kind == "bool":
            return ["default=True"] if text.lower() == "true" else []
        if kind == "string":
            return [f'default="{text}"'] if text else []
        return [f"default={int(text, 0)}"] if int(text, 0) else []


def shown(kept: Versions, all_of: Versions) -> str:
    """Return a range, open if it reaches the last version."""
    return f"{kept.lowest}+" if kept.highest == all_of.highest else str(kept)


def module_source(title: str, definitions: list[Definition]) -> str:
    """Return the source of one module."""
    taken: set[str] = set()
    classes: list[str] = []
    imports: set[str] = set()
    for definition in definitions:
        writer = Writer(definition, taken)
        classes += writer.write()
        imports |= writer.imports
    exported = "\n".join(f'    "{d["name"]}",' for d in sorted(definitions, key=lambda d: str(d["name"])))
    head = [f'"""Pure core: {title}"""', "", "from __future__ import annotations", ""]
    if "UUID" in imports:
        head += ["from uuid import UUID", ""]
    if "Buffer" in imports:
        head.append("from ...types import Buffer")
    head += ["from .. import fields as f", "from ..message import Message"]
    if "Records" in imports:
        head.append("from ..records import Records")
    return "\n".join(head) + f"\n\n__all__ = [\n{exported}\n]\n\n\n" + "\n\n\n".join(classes) + "\n"


def main() -> int:
    """Write all modules; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("jars", nargs="+", type=Path, help="kafka-clients-<version>.jar and others of it")
    modules: dict[str, list[Definition]] = {}
    titles = dict(DATA_TITLES)
    for definition in [found for jar in parser.parse_args().jars for found in read_definitions(jar)]:
        name = definition["name"]
        if definition["type"] in ("request", "response"):
            api = name.removesuffix("Request").removesuffix("Response")
            module = f"api_{definition['apiKey']:02d}_{snake(api)}"
            titles[module] = f"{api}, API key {definition['apiKey']}, versions {stable(definition)}"
        else:
            module = next(module for start, module in DATA_MODULES.items() if name.startswith(start))
        modules.setdefault(module, []).append(definition)
    for module, definitions in sorted(modules.items()):
        (MESSAGES / f"{module}.py").write_text(module_source(f"{titles[module]}.", definitions))
    print(f"{len(modules)} modules in {MESSAGES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
