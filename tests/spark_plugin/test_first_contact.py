"""What stands in the way of a query is told at once, with the option that the user gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.kernel.errors import OdradekError
from odradek.spark_plugin import first_contact
from odradek.spark_plugin.client.settings import ClientSettings
from odradek.spark_plugin.errors import OptionError
from odradek.spark_plugin.first_contact import first_client
from odradek.spark_plugin.worker import HIDE_TRACEBACK, plain_errors
from tests.spark_plugin.client.scripted import Network

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("option", ["ssl.truststore.location", "ssl.keystore.location"])
def test_a_file_that_is_missing_is_named_with_its_option(tmp_path: Path, option: str) -> None:
    missing = tmp_path / "no-such.pem"
    given = {"bootstrap.servers": "a:1", "security.protocol": "SSL", option: str(missing)}

    with pytest.raises(OptionError) as caught:
        first_client(ClientSettings.of(given))

    assert str(caught.value).startswith(f"option 'kafka.{option}': {missing}: No such file or directory (")


def test_a_file_that_is_no_certificate_is_named_with_its_option(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("not a certificate")
    given = {"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.truststore.location": str(wrong)}

    with pytest.raises(OptionError, match=f"option 'kafka.ssl.truststore.location': {wrong}: "):
        first_client(ClientSettings.of(given))


def test_brokers_that_all_refuse_are_told_by_the_option_that_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Network().client(bootstrap_servers="dead:1")
    monkeypatch.setattr(first_contact, "client_for", lambda _settings: client)

    with pytest.raises(OdradekError, match=r"option 'kafka.bootstrap.servers': .*dead:1: connection refused"):
        first_client(client.settings)


def test_spark_shows_what_a_user_did_wrong_without_our_traceback() -> None:
    variables: dict[str, str] = {}

    with pytest.raises(OptionError), plain_errors(variables):
        raise OptionError("subscribe", "wrong")

    assert variables == {HIDE_TRACEBACK: "1"}


def test_bugs_of_ours_keep_their_traceback() -> None:
    variables: dict[str, str] = {}

    with pytest.raises(ZeroDivisionError), plain_errors(variables):
        _ = 1 / 0

    assert not variables
