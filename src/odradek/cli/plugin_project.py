"""Shell: `odradek plugins new`: writes the project of a plugin, which passes its kit as it is written."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.kernel.errors import ConfigError
from odradek.kernel.plugin_system.manager import installed_plugins

from .options import document
from .plugin_templates.project import KINDS, files_of

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `plugins new`."""
    document(
        parser,
        "Write a plugin as a project of its own: a package, its announcement, tests with Odradek's kit, a README. "
        "It passes its kit as it is written, and is to be changed from there.",
        [
            ("plugins new my_stage --kind stage", "in the folder my-stage"),
            ("plugins new my_policy --kind cleanup --into policy", "in another one"),
        ],
    )
    parser.add_argument("name", metavar="NAME", help="the plugin's, as in `enable`: letters, digits, underscores")
    parser.add_argument("--kind", choices=sorted(KINDS), required=True, help="what it offers")
    parser.add_argument("--into", type=Path, metavar="DIR", help="a folder that is not there, or empty")


def run(arguments: argparse.Namespace) -> int:
    """Write the project.

    Raises:
        ConfigError: The name cannot be a plugin's, or there is something where the project would be.
    """
    name = plugin_name(arguments.name)
    folder = arguments.into or Path(name.replace("_", "-"))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there and not empty", hint="--into names another folder")
    for path, text in files_of(arguments.kind, name).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(file)
    print(f"\nnext: cd {folder} && pip install -e '.[test]' && odradek plugins check {name}")
    return 0


def plugin_name(text: str) -> str:
    """Return the name of a plugin as a module's.

    Raises:
        ConfigError: It cannot be one, or a plugin of this name is installed.
    """
    name = text.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ConfigError(f"{text!r} cannot be the name of a plugin", hint="small letters, digits, _; a letter first")
    if name == "odradek" or any(found.name == name for found in installed_plugins()):
        raise ConfigError(f"a plugin {name!r} is installed already", hint="choose another name")
    return name
