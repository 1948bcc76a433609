"""What an election is made with: what its plugin's keys say for the topic, and the broker's configuration."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from odradek.client import BlockingAdmin, NewTopic
from odradek.kernel.types import METADATA_TOPIC
from odradek.testing.running_broker import running_broker

if TYPE_CHECKING:
    from pathlib import Path

NAME = "patient_election"
CODE = '''"""An election that notes how patient it is to be."""

from odradek.kernel.api import ConfigKey, ConfigType, Scope, hookimpl
from odradek.plugins.election_isr.factory import IsrElectionFactory

SEEN = {}
LAGS = {}


class PatientFactory(IsrElectionFactory):
    def new_election(self, context):
        SEEN[context.partition.topic] = context.settings["odradek.patient.beats"]
        LAGS[context.partition.topic] = lambda: context.config().get_int("replica.lag.time.max.ms")
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


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of a broker whose elections are the plugin's."""
    (tmp_path / f"{NAME}.py").write_text(CODE)
    (tmp_path / "odradek.toml").write_text(CONFIG)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    return tmp_path / "odradek.toml"


def test_an_election_knows_what_its_plugin_s_keys_say_for_its_topic(config: Path) -> None:
    with (
        running_broker(config=config) as broker,
        BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin,
    ):
        admin.create_topic(NewTopic("calm", 1, configs={"odradek.patient.beats": "7"}))
        admin.create_topic(NewTopic("plain", 1))

    assert importlib.import_module(NAME).SEEN == {METADATA_TOPIC: 3, "calm": 7, "plain": 3}


def test_an_election_reads_the_broker_s_keys_as_they_are_now(config: Path) -> None:
    with (
        running_broker({"replica.lag.time.max.ms": 12_000}, config=config) as broker,
        BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin,
    ):
        admin.create_topic(NewTopic("t", 1))
        lags = importlib.import_module(NAME).LAGS

        assert {topic: read() for topic, read in lags.items()} == {METADATA_TOPIC: 12_000, "t": 12_000}
