"""The jars of Spark's Kafka connector, resolved by a Maven that is none."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from tools import spark_connector
from tools.spark_connector import NoConnectorError, jars_for

if TYPE_CHECKING:
    from pathlib import Path

MAVEN = """#!/bin/sh
for word in "$@"; do case "$word" in -DoutputDirectory=*) folder="${word#-DoutputDirectory=}";; esac; done
mkdir -p "$folder" && touch "$folder/kafka-clients-3.9.2.jar" "$folder/scala-library-2.13.15.jar"
"""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder of a machine's programs, where nothing is cached and pyspark has one jar."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/bin{os.pathsep}/usr/bin")
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars/scala-library-2.13.18.jar").touch()
    monkeypatch.setattr(spark_connector, "spark_jars", lambda: tmp_path / "jars")
    return tmp_path / "bin"


def put(folder: Path, program: str) -> None:
    (folder / "mvn").write_text(program)
    (folder / "mvn").chmod(0o755)


def test_a_version_without_a_connector_is_told() -> None:
    with pytest.raises(NoConnectorError, match=r"no connector for pyspark 4\.3\.0, but for 4\.0\.0, 4\.2\.0"):
        jars_for("4.3.0")


def test_what_pyspark_has_already_is_left_out(machine: Path) -> None:
    put(machine, MAVEN)

    assert [jar.name for jar in jars_for("4.2.0")] == ["kafka-clients-3.9.2.jar"]


def test_maven_is_asked_once(machine: Path) -> None:
    put(machine, MAVEN)
    jars = jars_for("4.2.0")
    put(machine, "#!/bin/sh\nexit 1\n")

    assert jars_for("4.2.0") == jars


def test_the_token_provider_is_that_of_another_version(machine: Path) -> None:
    put(machine, MAVEN)
    jars_for("4.2.0")
    pom = (spark_connector.cache_of("4.2.0") / "pom.xml").read_text()

    assert re.findall(r"<version>(\d.*)</version>", pom) == ["1", "4.0.0", "4.2.0"]


def test_what_maven_says_is_told(machine: Path) -> None:
    put(machine, "#!/bin/sh\necho no such artifact; exit 1\n")

    with pytest.raises(NoConnectorError, match=r"could not resolve the connector 4\.2\.0: no such artifact"):
        jars_for("4.2.0")


def test_a_machine_without_maven_is_told(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(machine))

    with pytest.raises(NoConnectorError, match="mvn"):
        jars_for("4.2.0")
