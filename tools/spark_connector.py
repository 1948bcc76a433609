"""Shell: the jars of Spark's Kafka connector, for tests and benchmarks beside it: resolved by Maven into a cache, once.

Not every version is whole on Maven Central: the connector 4.2.0 asks for a token provider of 4.2.0 that was never
published there, so that of 4.0.0 is forced (the methods that the connector calls of it are the same; they build
settings and log-ins). 4.0.0 is whole, and for 4.3.0 there is no connector.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>odradek</groupId>
  <artifactId>connector-jars</artifactId>
  <version>1</version>
  <dependencyManagement><dependencies><dependency>
    <groupId>org.apache.spark</groupId>
    <artifactId>spark-token-provider-kafka-0-10_2.13</artifactId>
    <version>{token_provider}</version>
  </dependency></dependencies></dependencyManagement>
  <dependencies><dependency>
    <groupId>org.apache.spark</groupId>
    <artifactId>spark-sql-kafka-0-10_2.13</artifactId>
    <version>{connector}</version>
  </dependency></dependencies>
</project>
"""
TOKEN_PROVIDERS = {"4.0.0": "4.0.0", "4.2.0": "4.0.0"}
"""The version of the connector, which is that of pyspark, to that of the token provider."""
TIMEOUT_S = 600


class NoConnectorError(Exception):
    """There is no connector here; the message says why, and what would help."""


def cache_of(version: str) -> Path:
    """Return where the jars for a version of pyspark are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "odradek-spark" / version


def jars_for(version: str) -> list[Path]:
    """Return the jars that a version of pyspark needs for `format("kafka")` and has not.

    Raises:
        NoConnectorError: They cannot be had here.
    """
    if version not in TOKEN_PROVIDERS:
        known = ", ".join(TOKEN_PROVIDERS)
        raise NoConnectorError(f"Maven Central has no connector for pyspark {version}, but for {known}")
    folder = cache_of(version) / "jars"
    if not folder.exists():
        resolve(version, folder)
    own = {stem(jar) for jar in spark_jars().glob("*.jar")}
    return sorted(jar for jar in folder.glob("*.jar") if stem(jar) not in own)


def spark_jars() -> Path:
    """Return the folder of the jars that come with pyspark."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def stem(jar: Path) -> str:
    """Return a jar's name without its version."""
    return re.sub(r"-\d.*$", "", jar.name)


def resolve(version: str, folder: Path) -> None:
    """Have Maven copy the connector and what it needs into a folder."""
    maven = shutil.which("mvn")
    if maven is None:
        raise NoConnectorError("Maven (mvn) is not on this machine")
    folder.parent.mkdir(parents=True, exist_ok=True)
    pom = folder.parent / "pom.xml"
    pom.write_text(POM.format(connector=version, token_provider=TOKEN_PROVIDERS[version]))
    part = folder.with_name("jars.part")
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={part}"]
    done = subprocess.run(
        [maven, "-q", "-B", "-f", str(pom), *goal], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    if done.returncode:
        raise NoConnectorError(f"Maven could not resolve the connector {version}: {done.stdout[-300:].strip()}")
    part.rename(folder)
