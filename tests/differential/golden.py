"""Shell: the golden files: what Apache Kafka answered, a session a file, one line a version and question.

A file says where it comes from and lists the session's steps. Neighbouring steps that ask the same in successive
versions and got the same answer are one entry (`"versions": "4-9"`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from .conversation import Step

FOLDER: Final = Path(__file__).parent / "golden"
_WIDTH: Final = 160


def path_of(session: str) -> Path:
    """Return the golden file of a session."""
    return FOLDER / f"{session}.json"


def load(session: str) -> list[Step]:
    """Return what Apache Kafka answered in a session.

    Raises:
        FileNotFoundError: nobody recorded it.
    """
    steps = []
    for entry in json.loads(path_of(session).read_text())["steps"]:
        first, _, last = entry["versions"].partition("..")
        versions = range(int(first), int(last or first) + 1)
        steps += [Step(entry["api"], version, entry["note"], entry["answer"]) for version in versions]
    return steps


def save(session: str, steps: list[Step], origin: str) -> bool:
    """Write a session's golden file unless it says the same already; say whether it was written."""
    path = path_of(session)
    if path.exists() and load(session) == steps:
        return False
    entries = [_entry(run) for run in _runs(steps)]
    lines = ",\n".join(_format(entry, "  ") for entry in entries)
    path.write_text(f'{{\n"origin": {json.dumps(origin)},\n"steps": [\n{lines}\n]\n}}\n')
    return True


def _runs(steps: list[Step]) -> list[list[Step]]:
    """Return the steps in runs that differ in nothing but a version that counts up."""
    runs: list[list[Step]] = []
    for step in steps:
        last = runs[-1][-1] if runs else None
        is_next = last is not None and step == Step(last.api, last.version + 1, last.note, last.answer)
        if is_next:
            runs[-1].append(step)
        else:
            runs.append([step])
    return runs


def _entry(run: list[Step]) -> dict[str, Any]:
    first, last = run[0], run[-1]
    versions = f"{first.version}..{last.version}" if len(run) > 1 else str(first.version)
    return {"api": first.api, "versions": versions, "note": first.note, "answer": first.answer}


def _format(value: Any, indent: str) -> str:
    """Return JSON that breaks only what would be wider than a line."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + len(indent) <= _WIDTH or not isinstance(value, dict | list) or not value:
        return indent + flat
    inner = indent + "  "
    if isinstance(value, list):
        items = [_format(item, inner) for item in value]
        return f"{indent}[\n" + ",\n".join(items) + f"\n{indent}]"
    items = [f"{inner}{json.dumps(name)}: {_format(item, inner).lstrip()}" for name, item in value.items()]
    return f"{indent}{{\n" + ",\n".join(items) + f"\n{indent}}}"
