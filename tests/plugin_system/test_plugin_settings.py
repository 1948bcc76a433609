"""`[plugins.NAME]`: a key that nobody takes is refused, with its line and the nearest name."""

from pathlib import Path

import pytest

from odradek.kernel.broker import read_broker_options
from odradek.kernel.broker.parts import BrokerParts
from odradek.kernel.config.toml_file import parse_toml
from odradek.kernel.errors import ConfigError
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.plugin_system.settings import check_plugin_settings
from odradek.plugins.storage_memory.engine import MemoryEngine
from tests.machines import machine_with

TAKEN = {"delay": ("levels", "path"), "plain": ()}
INSTALLED = ["delay", "plain", "asleep"]


def check(text: str) -> None:
    check_plugin_settings(parse_toml(text, "odradek.toml"), TAKEN, INSTALLED)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[plugins]\nenable = []\n",
        '[plugins.delay]\nlevels = ["5s"]\npath = "x"\n',
        "[plugins.plain]\n",
        "[plugins.asleep]\nwho = 'knows'\n",
    ],
)
def test_sections_that_their_plugins_take_pass(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[plugins.delay]\npath = 'x'\nlevel = 3\n", ("line 3", "takes no key 'level'", "did you mean 'levels'?")),
        ("[plugins.delay]\nzzz = 3\n", ("line 2", "plugin 'delay' takes no key 'zzz'")),
        ("[plugins.plain]\nlevels = 3\n", ("line 2", "takes no key 'levels'", "it takes none", "[broker]")),
        ("[plugins.deley]\npath = 'x'\n", ("line 1", "no plugin 'deley' is installed", "did you mean 'delay'?")),
        ("plugins.plain.path = 1\n", ("line 1", "takes no key 'path'")),
    ],
)
def test_what_nobody_takes_is_refused_with_its_line_and_the_nearest_name(text: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        check(text)
    assert [part for part in parts if part not in str(caught.value)] == []


def test_a_broker_is_not_started_with_a_key_that_its_plugin_does_not_take(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text('[plugins.storage_segment]\npath = "/mnt/fast"\n')
    with pytest.raises(ConfigError, match="plugin 'storage_segment' takes no key 'path'"):
        read_broker_options(config=file, environment={}, options=[], data_dir=tmp_path)


def test_a_plugin_names_the_keys_of_its_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "stranger_with_section"
    package.mkdir()
    (package / "plugin.py").write_text('"""A plugin."""\n\nodradek_plugin_settings = ("path",)\n')
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "odradek.toml"
    name = "stranger_with_section.plugin"
    enabled = f'enable = ["storage_segment", "election_isr", "assignors", "cleanup", "{name}"]'
    text = f'[plugins]\n{enabled}\n[plugins."{name}"]\n'
    file.write_text(text + "path = 1\n")
    read = read_broker_options(config=file, environment={}, options=[], data_dir=tmp_path)

    assert read.plugin_settings == {name: {"path": 1}}
    file.write_text(text + "pat = 1\n")
    with pytest.raises(ConfigError, match="takes no key 'pat'"):
        read_broker_options(config=file, environment={}, options=[], data_dir=tmp_path)


def test_a_storage_gets_the_section_of_its_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "stranger_with_storage"
    package.mkdir()
    (package / "plugin.py").write_text(
        "from odradek.kernel.api import hookimpl\n"
        "from odradek.plugins.storage_memory.engine import MemoryEngine\n"
        "odradek_plugin_settings = ('path',)\n"
        "@hookimpl\ndef odradek_storages():\n    return {'mine': MemoryEngine}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "odradek.toml"
    file.write_text(
        '[plugins]\nenable = ["*", "stranger_with_storage.plugin"]\n'
        '[plugins."stranger_with_storage.plugin"]\npath = "/mnt/fast"\n'
    )
    options = read_broker_options(config=file, environment={}, options=[], data_dir=tmp_path)
    engine = BrokerParts(options, machine_with(clock=ManualClock())).logs.replicas.engines["mine"]
    assert isinstance(engine, MemoryEngine)

    assert engine.context.settings == {"path": "/mnt/fast"}
