"""An election plugin's own keys: each replica's election is made with what they say for its topic."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from odradek.kernel.client import BlockingAdmin, NewTopic
from odradek.kernel.testing.running_broker import running_broker
from odradek.kernel.types import METADATA_TOPIC

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NAME = "patient_election"
CODE = '''"""An election that notes how patient it is to be."""

from odradek.kernel.api import ConfigKey, ConfigType, Scope, hookimpl
from odradek.plugins.election_isr.factory import IsrElectionFactory

SEEN = {}


class PatientFactory(IsrElectionFactory):
    def new_election(self, context):
        SEEN[context.partition.topic] = context.settings["odradek.patient.beats"]
        return super().new_election(context)


@hookimpl
def odradek_config_keys():
    return [ConfigKey("odradek.patient.beats", ConfigType.INT, 3, scope=Scope.TOPIC)]


@hookimpl
def odradek_elections():
    return {"patient": PatientFactory()}
'''
CONFIG = f"""
[plugins]
enable = ["*", "{NAME}"]
[broker]
"odradek.election" = "patient"
"odradek.metadata.election" = "patient"
"""


def test_an_election_knows_what_its_plugin_s_keys_say_for_its_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{NAME}.py").write_text(CODE)
    (tmp_path / "odradek.toml").write_text(CONFIG)
    monkeypatch.syspath_prepend(tmp_path)
    with (
        running_broker(config=tmp_path / "odradek.toml") as broker,
        BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin,
    ):
        admin.create_topic(NewTopic("calm", 1, configs={"odradek.patient.beats": "7"}))
        admin.create_topic(NewTopic("plain", 1))

    assert importlib.import_module(NAME).SEEN == {METADATA_TOPIC: 3, "calm": 7, "plain": 3}
