"""The reference of the options: it is fresh, and says everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.client.producer_settings import PRODUCER_KEYS
from odradek.spark_plugin.client.setting_keys import EFFECTIVE_KEYS, KNOWN_NAMES
from odradek.spark_plugin.options.option_reference import MOVED, WRITE_KEYS, render_page
from odradek.spark_plugin.options.option_table import OPTIONS
from odradek.spark_plugin.reading.data_loss import Event
from odradek.spark_plugin.writing.write_settings import _KEYS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "spark-options.md"


def test_the_page_of_options_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), (
        "run: python -m tools.render_spark_options > docs/reference/spark-options.md"
    )


@pytest.mark.parametrize("name", [option.name for option in OPTIONS])
def test_every_option_has_a_row(name: str) -> None:
    assert f"\n| `{name}` | " in render_page()


def test_a_job_that_moves_finds_what_happens_to_every_option_of_the_connector() -> None:
    section = render_page().partition("\n## A job that moves from the connector\n")[2].partition("\n## ")[0]
    rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    told = [name for name in rows if not name.startswith(("kafka.", "spark."))]

    assert told == [option.name for option in OPTIONS if not option.is_ours]
    assert MOVED.keys() <= set(told)


def test_every_key_of_kafka_s_clients_and_every_loss_is_named() -> None:
    page = render_page()

    assert [name for name in KNOWN_NAMES if f"`{name}`" not in page and f"`kafka.{name}`" not in page] == []
    assert [event for event in Event if f"| {event.value} |" not in page] == []
    assert WRITE_KEYS.keys() <= {key.name for key in PRODUCER_KEYS}


def test_the_keys_for_writing_are_those_that_a_sink_reads() -> None:
    of_every_client = {key.name for key in EFFECTIVE_KEYS}

    # The class of a partitioner is for `options`.
    assert WRITE_KEYS.keys() - {"partitioner.class"} == set(_KEYS) - of_every_client
