"""The documents are true where a program can tell: links, paths, commands, keys, names, examples."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import odradek_template
import pytest

from odradek.cli import COMMANDS, build_parser
from odradek.client.consumer_settings import ADMIN_KEYS, CONSUMER_KEYS
from odradek.client.producer_settings import PRODUCER_KEYS
from odradek.kernel import hookspecs
from odradek.kernel.config.keys import Scope
from odradek.kernel.config.properties import parse_properties
from odradek.kernel.config.registry import Registry
from odradek.kernel.config.settings import Settings
from odradek.kernel.config.toml_file import parse_toml
from odradek.kernel.errors import ConfigError
from odradek.spark_plugin.client.setting_keys import KNOWN_NAMES
from tools.render_configuration import own_plugins
from tools.rooms import FOLDERS, LINKED, REAL

ROOT = Path(__file__).parents[2]
REGISTRY = Registry.of(
    [*own_plugins().config_keys(), *(("template", key) for key in odradek_template.odradek_config_keys())]
)
CLIENT_KEYS = KNOWN_NAMES | {key.name for key in (*PRODUCER_KEYS, *CONSUMER_KEYS, *ADMIN_KEYS)}
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "plugins/*/README.md", "examples/**/README.md")
    for path in ROOT.glob(pattern)
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)
"""Everything that a visitor reads."""

GENERATED = ROOT / "docs/reference/configuration.md"
ROOTS = (*LINKED, "src", "tests", "docs", "tools", "benchmarks", "examples")
PLACEHOLDERS = re.compile(r"<|\bNN|_NN|NNNN|\*|X\b")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
KEY = re.compile(r"[a-z][a-z0-9]*(\.[a-z0-9]+)+")
OF_SOMEBODY = re.compile(r"(?<![\w.~-])/(?:work|home|root|Users)/")
"""How a path of the machine where a page was written begins."""


SUFFIXES = frozenset({"py", "md", "toml", "log", "properties", "json", "service"})
"""How names of files end that look like keys."""

NO_KEYS = frozenset(
    {
        "compression.zstd",
        "eligible.leader.replicas.version",
        "metadata.version",
        "odradek.dead.from",
        "odradek.dead.timestamp",
        "odradek.delay.cancel",
        "odradek.delay.id",
        "odradek.delayed.from",
        "odradek.delayed.timestamp",
        "odradek.deliver.after",
        "odradek.deliver.at",
        "odradek.expires.at",
        "odradek.keep",
        "odradek.retry.attempt",
        "odradek.retry.behind",
        "odradek.retry.dead",
        "odradek.retry.origin",
        "odradek.retry.reason",
        "odradek.retry.spared",
        "share.version",
        "streams.version",
        "transaction.version",
    }
)
"""Names that look like keys of a broker and are something else: a module of Python's library, a header, a feature, the
metadata of an offset."""


class Block(NamedTuple):
    """A fenced block: the page it stands in, its language, its text."""

    page: Path
    language: str
    text: str


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose_of(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return FENCE.sub("", text_of(page))


def blocks(*languages: str) -> Iterator[Block]:
    for page in PAGES:
        for language, text in FENCE.findall(text_of(page)):
            if language in languages:
                yield Block(page, language, text)


def spans() -> Iterator[tuple[Path, str]]:
    """Iterate over what stands between single backticks."""
    for page in PAGES:
        if page != GENERATED:
            for span in re.findall(r"`([^`\n]+)`", prose_of(page)):
                yield page, span


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_link_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in LINK.findall(prose_of(page)):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and anchor not in anchors_of(target)):
                broken.append(f"{name_of(page)}: {link}")

    assert not broken


def test_every_path_that_is_named_exists() -> None:
    missing = [
        f"{name_of(page)}: {span}"
        for page, span in spans()
        if span.split("/")[0] in ROOTS
        and "/" in span
        and " " not in span
        and not PLACEHOLDERS.search(span)
        and not (ROOT / span).exists()
        and not (page.parent / span).exists()
    ]

    assert not missing


def test_every_module_that_is_named_by_its_room_is_in_a_room_of_that_name() -> None:
    modules = [f"/{name_of(path)}" for folder in (*FOLDERS, "tests") for path in (ROOT / folder).rglob("*.py")]
    missing = [
        f"{name_of(page)}: {span}"
        for page, span in spans()
        if re.fullmatch(r"[\w/]+/\w+\.py", span)
        and span.split("/")[0] not in ROOTS
        and not PLACEHOLDERS.search(span)
        and not any(module.endswith(f"/{span}") for module in modules)
    ]

    assert not missing


def test_a_page_names_no_place_of_the_machine_it_was_written_on() -> None:
    named = [f"{name_of(page)}: {found}" for page in PAGES for found in OF_SOMEBODY.findall(text_of(page))]

    assert not named


def test_every_page_of_the_documentation_is_in_its_index() -> None:
    index = ROOT / "docs/README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(text_of(index))}
    missing = [
        name_of(page)
        for page in PAGES
        if page.is_relative_to(index.parent) and page != index and "decisions" not in page.parts and page not in linked
    ]

    assert not missing


def test_the_table_of_commands_has_all_that_help_lists() -> None:
    page = (ROOT / "docs/how-to/command-line.md").read_text(encoding="utf-8")
    table = page.partition("| command |")[2].partition("\n\n")[0]
    told = {span.split()[0] for row in table.splitlines() for span in re.findall(r"`([^`]+)`", row.split("|")[1])}

    assert told == set(COMMANDS)


def test_decisions_are_numbered_without_gaps_and_listed() -> None:
    folder = ROOT / "docs/decisions"
    files = sorted(path.name for path in folder.glob("[0-9]*.md"))
    titles = {name: text_of(folder / name).partition("\n")[0] for name in files}

    assert [name[:4] for name in files] == [f"{number:04}" for number in range(1, len(files) + 1)]
    for name, title in titles.items():
        assert title.startswith(f"# {name[:4]}: ")
        assert f"| [{name[:4]}]({name}) | {title[8:]} |" in text_of(folder / "README.md")
        assert re.match(r"(Accepted|Superseded by .*), 20\d\d-\d\d\.", text_of(folder / name).splitlines()[2]), name


def test_the_architecture_maps_every_room() -> None:
    map_text = text_of(ROOT / "docs/architecture.md")
    entries = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in (ROOT / "kernel").iterdir()
        if path.suffix in {"", ".py"} and not path.name.startswith("_")
    } | {f"{name}/" for name in (*LINKED, *REAL)}

    assert sorted(entry for entry in entries if f"`{entry}`" not in map_text) == []


def commands() -> Iterator[tuple[Path, list[str]]]:
    """Iterate over all commands of all shell blocks; pipes and lists taken apart, redirections cut off."""
    for page, _language, text in blocks("sh"):
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            command: list[str] = []
            for word in [*words, "|"]:
                if word in {"|", "&&", "&", ";"}:
                    if command:
                        yield page, command
                    command = []
                else:
                    command.append(word)


def cut_redirections(words: list[str]) -> list[str]:
    ends = [number for number, word in enumerate(words) if word in {"<", ">", ">>", "2>"}]
    return words[: min(ends)] if ends else words


def test_every_odradek_command_is_one() -> None:
    wrong = []
    for page, command in commands():
        if command[0] != "odradek":
            continue
        arguments = cut_redirections(command[1:])
        try:
            parsed = build_parser(arguments).parse_args(arguments)
        except (SystemExit, ConfigError) as error:
            wrong.append(f"{name_of(page)}: {shlex.join(command)}: {error}")
        else:
            assert "run" in parsed, command

    assert not wrong


def test_every_python_command_names_what_is_there() -> None:
    wrong = []
    for page, command in commands():
        if Path(command[0]).name not in {"python", "python3"} or len(command) < 2:
            continue
        if command[1] == "-m":
            parts = command[2].split(".")
            parts = parts[1:] if parts[0] == "odradek" else parts
            found = command[2] in {"venv", "pip", "odradek"} or any(
                (ROOT / "/".join(parts)).with_suffix(suffix).exists() for suffix in ("", ".py")
            )
        else:
            # What lies beside the checkout is no part of it, and not on every machine.
            found = (ROOT / command[1]).exists() or command[1].startswith(("-", "../"))
        if not found:
            wrong.append(f"{name_of(page)}: {shlex.join(command)}")

    assert not wrong


def test_nobody_is_told_to_install_by_name_what_has_no_release() -> None:
    by_name = re.compile(r"pip install (?:-\S+ )*[\"']?odradek(?![\w.-]*\.whl|-)")
    told = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml")]
    for folder in ("docs", "examples", "kernel", "plugins", "spark_plugin"):
        told += [path for suffix in ("md", "py", "toml") for path in (ROOT / folder).rglob(f"*.{suffix}")]
    wrong = [
        f"{name_of(path)}: {line.strip()}"
        for path in told
        if "decisions" not in path.parts  # what was accepted is not written anew
        for line in path.read_text(encoding="utf-8").splitlines()
        if by_name.search(line)
    ]

    assert not wrong


def test_the_readme_begins_with_the_two_commands() -> None:
    readme = [block.text.strip() for block in blocks("sh") if block.page == ROOT / "README.md"]

    assert readme[:2] == ["pip install . && odradek demo", "pip install tox && tox"]


def test_every_configuration_file_shown_would_start_a_broker() -> None:
    wrong = []
    for page, language, text in blocks("toml", "properties"):
        if "[project" in text:  # a pyproject.toml
            continue
        known = re.sub(r"^\[plugins\.\w+\]$.*?(?=^\[|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
        try:
            if language == "toml":
                Settings(parse_toml(known, name_of(page))).resolve(REGISTRY, data_dir=Path("data"))
            else:
                for entry in parse_properties(known, name_of(page)):
                    assert entry.key in REGISTRY.keys[Scope.BROKER], entry
        except ConfigError as error:
            wrong.append(str(error))

    assert not wrong


def test_a_list_of_plugins_that_is_shown_leaves_none_out() -> None:
    """Whoever copies a list without "*" is without groups, cleanup and transactions."""
    shown = [
        f"{name_of(path)}: {line.strip()}"
        for path in (*PAGES, *(path for folder in ("examples", *LINKED) for path in (ROOT / folder).rglob("*.py")))
        for line in path.read_text().splitlines()
        if re.match(r"\s*enable = \[(?!\.\.\.|\])", line)
    ]

    assert shown
    assert not [line for line in shown if 'enable = ["*"' not in line]


def is_known_key(name: str) -> bool:
    of_client = name.removeprefix("kafka.")  # as options of Spark's are called
    return of_client in CLIENT_KEYS or any(name in keys for keys in REGISTRY.keys.values())


def test_every_key_that_is_named_is_known() -> None:
    begins = {name.split(".")[0] for keys in REGISTRY.keys.values() for name in keys} - {"odradek"}
    own = re.compile(r"odradek\.(?!kernel|plugins|testing|client|cli|lab|storage_base|toml|config\b|_)")
    wrong = []
    for page, span in spans():
        name = span.partition("=")[0].strip()
        if not KEY.fullmatch(name) or name.rpartition(".")[2] in SUFFIXES:
            continue
        if (name.split(".")[0] in begins or own.match(name)) and not is_known_key(name) and name not in NO_KEYS:
            wrong.append(f"{name_of(page)}: {name}")

    assert not wrong


OF_TESTS = {
    *("KEY", "PEERS", "PEERS_CACHE", "INTEROP_ADDRESS", "INTEROP_CLUSTER"),
    *("SOAK_FILE", "SOAK_MINUTES", "SWEEP_SEEDS"),
}
"""What tests are told, behind `ODRADEK_`; and a key that stands for any."""


def test_every_variable_that_is_named_stands_for_a_key() -> None:
    known = {re.sub(r"[^A-Z0-9]", "_", name.upper()) for name in REGISTRY.keys[Scope.BROKER]}
    wrong = [
        f"{name_of(page)}: ODRADEK_{name}"
        for page in PAGES
        for name in re.findall(r"\bODRADEK_([A-Z][A-Z_]*[A-Z])=?", text_of(page))
        if name not in known | OF_TESTS
    ]

    assert not wrong


def imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("odradek"):
            yield from ((node.module or "", alias.name) for alias in node.names)


def test_every_python_example_parses_and_imports_what_is_there() -> None:
    wrong = []
    for page, _language, text in blocks("python"):
        for module, name in imported_names(ast.parse(text)):
            try:
                loaded = importlib.import_module(module)
                is_there = hasattr(loaded, name)
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] != "pyspark":
                    raise
                continue  # an extra, which the environment of `tox -e spark` has
            if not is_there and not (Path(loaded.__file__ or "").parent / f"{name}.py").exists():
                wrong.append(f"{name_of(page)}: {module}.{name}")

    assert not wrong


def test_examples_import_what_is_public_and_nothing_else() -> None:
    """Public is what the API's docstring lists; one page takes the codec apart, and says so."""
    table = (ast.get_docstring(ast.parse(text_of(ROOT / "kernel/api.py"))) or "").splitlines()
    cells = [re.findall(r"`([\w.]+)`", line.split("|")[1]) for line in table if line.startswith("| `")]
    public = {
        f"odradek.{name}" if not name.startswith(".") else f"odradek.testing{name}" for names in cells for name in names
    }
    of_modules = {"odradek.kernel.wire.messages", "odradek.testing.contracts"}
    sources = {name_of(path): path.read_text(encoding="utf-8") for path in (ROOT / "examples").rglob("*.py")}
    sources |= {
        f"{name_of(block.page)}, block {number}": block.text
        for number, block in enumerate(blocks("python"))
        if block.page != ROOT / "docs/reference/wire.md"
    }
    wrong = [
        f"{name}: {module}"
        for name, text in sources.items()
        for module, what in imported_names(ast.parse(text))
        if module.startswith("odradek.") and not public & {module, f"{module}.{what}"}
        if module.rpartition(".")[0] not in public & of_modules
    ]

    assert of_modules < public
    assert not wrong


def test_every_hook_is_offered_by_the_page_on_plugins() -> None:
    page = text_of(ROOT / "docs/writing-a-plugin.md")

    assert [name for name in vars(hookspecs) if name.startswith("odradek_") and f"`{name}`" not in page] == []


def test_every_run_time_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [re.split(r"[<>=!\[; ]", item)[0] for item in project["dependencies"]]
    table = re.findall(
        r"^\| (\w+) \|.*\|.*\|", text_of(ROOT / "docs/decisions/0008-run-time-dependencies.md"), re.MULTILINE
    )

    assert table[0] == "dependency"
    assert table[1:] == declared


@pytest.mark.parametrize("client", ["kafkajs", "franz-go", "kafka-python"])
def test_the_readme_names_the_version_of_a_client_that_the_tests_run(client: str) -> None:
    match client:
        case "kafkajs":
            package = json.loads((ROOT / "tests/interop/kafkajs/package.json").read_text())
            version = package["dependencies"]["kafkajs"]
        case "franz-go":
            found = re.search(r"franz-go v([\d.]+)", (ROOT / "tests/interop/franz/go.mod").read_text())
            assert found is not None
            version = found[1]
        case _:
            groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
            (version,) = [item[14:] for item in groups["test"] if item.startswith("kafka-python==")]

    assert f"| {client} | {version} |" in text_of(ROOT / "README.md")
