"""Pure core: the files of a plugin's project, under the plugin's own name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import assignor, cleanup, stage, storage

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE: Final = "my_plugin"
DISTRIBUTION: Final = "my-plugin"
CLASS: Final = "MyPlugin"

PYPROJECT: Final = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "my-plugin"
version = "0.1.0"
description = "SUMMARY"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["odradek>=0.1"]

[project.optional-dependencies]
test = ["odradek[testing]"]

# How Odradek finds it: the name left of the sign is the one for `enable` and `disable` in odradek.toml.
[project.entry-points."odradek.plugins"]
my_plugin = "my_plugin"

[tool.setuptools.packages.find]
where = ["src"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]
filterwarnings = ["error"]
"""

README: Final = """\
# my-plugin

SUMMARY

```sh
pip install -e '.[test]'          # Odradek finds it from now on
odradek plugins check my_plugin   # loads it, checks its signatures, runs the quick part of its kit
pytest                            # everything that Odradek promises others of such a plugin, and tests of its own
odradek serve
```

In another window:

```sh
TRY```
"""

KINDS: Final = {"assignor": assignor, "cleanup": cleanup, "stage": stage, "storage": storage}


def files_of(kind: str, name: str) -> Mapping[str, str]:
    """Return the files of a new project, by their paths in it.

    Args:
        kind: One of `KINDS`.
        name: The plugin's; letters, digits and underscores, and a letter first.
    """
    chosen = KINDS[kind]
    texts: Mapping[str, str] = {"pyproject.toml": PYPROJECT, "README.md": README, **chosen.FILES}
    return {
        named(path, name): named(text.replace("SUMMARY", chosen.SUMMARY).replace("TRY", chosen.TRY), name)
        for path, text in texts.items()
    }


def named(text: str, name: str) -> str:
    """Return a text with a plugin's name in the place of the one that templates have."""
    camel = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    distribution = "-".join(filter(None, name.split("_")))
    return text.replace(MODULE, name).replace(DISTRIBUTION, distribution).replace(CLASS, camel)
