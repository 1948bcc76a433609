"""`readFrom`, `dataDir`, `tieredStore`: what may be said, and what is refused with a word on what to do."""

from __future__ import annotations

import pytest

from odradek.plugins.storage_tiered.store_settings import STORE_CONFIG_KEYS, STORE_KEY
from odradek.spark_plugin.direct import DirectSettings, direct_settings
from odradek.spark_plugin.direct.settings import STORE_OPTIONS
from odradek.spark_plugin.errors import OptionError


def test_without_a_place_brokers_are_read() -> None:
    assert direct_settings({"subscribe": "orders"}) is None
    assert direct_settings({"readFrom": "auto"}) is None


def test_brokers_alone_are_read_when_that_is_said() -> None:
    assert direct_settings({"readfrom": "broker", "datadir": "/data"}) is None


def test_keys_have_any_case_and_directories_are_separated_by_commas() -> None:
    expected = DirectSettings(data_dirs=("/data/a", "/data/b"))

    assert expected == direct_settings({"DATADIR": "/data/a, /data/b,"})


def test_a_store_takes_the_options_that_the_broker_takes() -> None:
    found = direct_settings(
        {"readFrom": "Segments", "tieredStore": "s3://bucket/prefix", "tieredstore.secret.access.key": "hush"}
    )

    assert found is not None
    assert (found.is_required, found.store_url) == (True, "s3://bucket/prefix")
    assert found.store_options == (("secret.access.key", "hush"),)
    assert "hush" not in repr(found)


def test_the_options_of_a_store_are_those_of_the_broker() -> None:
    keys = {key.name.removeprefix(f"{STORE_KEY}.") for key in STORE_CONFIG_KEYS if key.name != STORE_KEY}

    assert keys == set(STORE_OPTIONS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"readFrom": "disk"}, "'disk': it has to be one of auto, broker, segments"),
        ({"readFrom": "segments"}, "needs dataDir or tieredStore"),
        ({"dataDir": "data"}, "'data'.* a path has to be absolute"),
        (
            {"tieredStore": "file:///x", "tieredStore.regoin": "eu"},
            "tieredStore.regoin is not known: .*tieredStore.region",
        ),
        ({"tieredStore.region": "eu"}, "tieredStore.region is set, and tieredStore is not"),
    ],
)
def test_what_is_wrong_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        direct_settings(options)
