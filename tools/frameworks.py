"""Run programs of frameworks (Kafka Streams, FastStream, Watermill, ...) against this broker, and beside Apache Kafka.

    python -m tools.frameworks --list                       what there is
    python -m tools.frameworks                              all of them, against this broker
    python -m tools.frameworks celery sarama --beside-kafka two of them, against Apache Kafka as well
    python -m tools.frameworks --address 127.0.0.1:9092     against a broker that runs already
    python -m tools.frameworks --record                     all, beside Kafka; renews the table of the documentation

A framework is a folder of `examples/frameworks`: `framework.toml`, a program, and a file that pins its packages, from
which this command knows how it is built and run. A program is given the broker's address and a prefix for its topics,
checks itself, and ends with status 0 and the line `ok`. Each is built once, in `$XDG_CACHE_HOME/odradek-frameworks`.

Needs the package managers of the languages (pip, Maven and Java 17, Go 1.26, npm and Node 20, cargo and cmake) and
their registries; Apache Kafka comes from the folder of peers (`ODRADEK_PEERS`). A framework whose package manager is
not there is `missing`. Ends with status 1 when something failed or is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from tests.broker.broker_process import BrokerProcess
from tests.interop.brokers import KafkaProcess
from tests.interop.clients import MissingClientError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).parents[1]
PROGRAMS: Final = ROOT / "examples/frameworks"
DOCUMENT: Final = ROOT / "docs/how-to/frameworks.md"
TABLE: Final = re.compile(r"(?<=<!-- frameworks -->\n).*?(?=<!-- end -->)", re.DOTALL)
BUILD_LIMIT_S: Final = 1800
RUN_LIMIT_S: Final = 300
QUICK_GROUPS: Final = "group.initial.rebalance.delay.ms=0"
QUIET_JAVA: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
SAID_LINES: Final = 20
KAFKA_VERSION: Final = "4.3.1"


@attrs.frozen
class Recipe:
    """How programs of a language are built and run, each command in the program's folder.

    Attributes:
        builds: The commands that build it, one after the other.
        run: The command that runs it; the broker's address and a prefix are appended.
    """

    builds: tuple[tuple[str, ...], ...]
    run: tuple[str, ...]


RECIPES: Final[Mapping[str, Recipe]] = {
    "requirements.txt": Recipe(
        (
            (sys.executable, "-m", "venv", "venv"),
            ("venv/bin/python", "-m", "pip", "install", "--quiet", "--requirement", "requirements.txt"),
        ),
        ("venv/bin/python", "program.py"),
    ),
    "pom.xml": Recipe(
        (
            ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=libs"),
            ("javac", "-parameters", "-cp", "libs/*", "Program.java"),
        ),
        # A program lives for seconds: the quick compiler is enough.
        ("java", "-XX:TieredStopAtLevel=1", QUIET_JAVA, "-cp", "libs/*:.", "Program"),
    ),
    "go.mod": Recipe((("go", "build", "-o", "program", "."),), ("./program",)),
    "package.json": Recipe(
        (("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"), ("npm", "run", "build")), ("node", "program.js")
    ),
    "Cargo.toml": Recipe((("cargo", "build", "--quiet"),), ("target/debug/program",)),
}
"""The file that pins a program's packages, and what is done with it."""


class BuildError(Exception):
    """A program could not be built; the text says what its package manager said."""


@attrs.frozen
class Framework:
    """A framework and its program.

    Attributes:
        name: Of its folder.
        title: As people write it.
        version: The one that is pinned.
        shows: What its program uses of it.
        folder: Where the program is.
    """

    name: str
    title: str
    version: str
    shows: str
    folder: Path

    @classmethod
    def read(cls, folder: Path) -> Framework:
        """Read what a folder says."""
        told = tomllib.loads((folder / "framework.toml").read_text(encoding="utf-8"))
        version = pinned_version(pins_of(folder).read_text(encoding="utf-8"), told["package"])
        return cls(folder.name, told["title"], version, told["shows"], folder)

    @property
    def recipe(self) -> Recipe:
        """How it is built and run."""
        return RECIPES[pins_of(self.folder).name]


def pins_of(folder: Path) -> Path:
    """Return the file of a folder that pins its packages.

    Raises:
        ValueError: There is none, or more than one.
    """
    found = [folder / name for name in RECIPES if (folder / name).exists()]
    if len(found) != 1:
        raise ValueError(f"{folder}: one of {', '.join(RECIPES)} says what it is built with, and here are {len(found)}")
    return found[0]


def pinned_version(text: str, package: str) -> str:
    """Return the version of a package in a file of pins: on the line with its name, behind what is no part of it.

    Raises:
        ValueError: The file does not pin it.
    """
    found = re.search(rf"(?<![\w/.-]){re.escape(package)}(?![\w/.-])[^\d\n]*(\d+(?:\.\w+)+)", text)
    if found is None:
        raise ValueError(f"{package} is not pinned")
    return found[1]


def frameworks() -> list[Framework]:
    """Return all that there are, by name."""
    return [Framework.read(path.parent) for path in sorted(PROGRAMS.glob("*/framework.toml"))]


def built(framework: Framework, cache: Path) -> Path:
    """Return a folder with the program ready to run, built anew when anything in it has changed.

    Raises:
        BuildError: It cannot be built here.
    """
    sources = sorted(path for path in framework.folder.rglob("*") if path.is_file())
    names = [path.relative_to(framework.folder).as_posix().encode() for path in sources]
    digest = hashlib.sha256(b"".join(name + path.read_bytes() for name, path in zip(names, sources, strict=True)))
    folder = cache / f"{framework.name}-{digest.hexdigest()[:16]}"
    mark = folder / ".built"
    if not mark.exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(framework.folder, folder)
        for command in framework.recipe.builds:
            build_step(command, folder)
        mark.touch()
    return folder


def build_step(command: Sequence[str], folder: Path) -> None:
    """Run one command of a recipe.

    Raises:
        BuildError: It failed, took too long, or its program is not on this machine.
    """
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=BUILD_LIMIT_S, errors="replace"
        )
    except FileNotFoundError as error:
        raise BuildError(f"{command[0]} is not on this machine") from error
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"`{' '.join(command)}` took longer than {BUILD_LIMIT_S} s") from error
    if done.returncode:
        raise BuildError(f"`{' '.join(command)}` failed: {end_of(done.stdout + done.stderr)}")


def end_of(text: str) -> str:
    """Return the last lines of what a program said, indented."""
    return "\n".join(f"    {line}" for line in text.splitlines()[-SAID_LINES:])


def judge(status: int | None, said: str) -> str:
    """Return what a program's end means: `ok`, or `failed` and why.

    Args:
        status: Its exit status; None when it was ended for taking too long.
        said: Its standard output.
    """
    lines = said.split("\n")
    if status is None:
        return f"failed: not done after {RUN_LIMIT_S} s"
    if status:
        return f"failed: exit status {status}"
    return "ok" if "ok" in lines else "failed: it did not say ok"


def run(framework: Framework, folder: Path, broker: str, address: str) -> str:
    """Run a program against a broker, print the line that tells how it went, and return `ok` or `failed`."""
    prefix = f"{framework.name}-{uuid.uuid4().hex[:8]}"  # noqa: TID251 - a broker may have topics of earlier runs
    started = time.monotonic()  # noqa: TID251 - for a person to read
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as log:
        command = [*framework.recipe.run, address, prefix]
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=log, start_new_session=True)
        try:
            status: int | None = process.wait(RUN_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the workers that it may have started
            process.wait()
            status = None
        out.seek(0)
        log.seek(0)
        answer, said = out.read(), log.read()
    verdict, _, reason = judge(status, answer).partition(": ")
    seconds = time.monotonic() - started  # noqa: TID251 - as above
    print(f"{verdict:7} {framework.title} {framework.version} on {broker}, {seconds:.0f} s", flush=True)
    if reason:
        print(f"    {reason}\n{end_of(answer + said)}", flush=True)
    return verdict


@contextlib.contextmanager
def brokers(address: str | None, *, is_beside_kafka: bool) -> Iterator[dict[str, str]]:
    """Run the brokers; gives the name of each and its address, Apache Kafka first.

    Raises:
        SystemExit: Apache Kafka is not on this machine; the text says what it needs.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        given: dict[str, str] = {}
        if is_beside_kafka:
            try:
                kafka = KafkaProcess(folder, QUICK_GROUPS)
            except MissingClientError as error:
                raise SystemExit(f"Apache Kafka is not on this machine; needs {error}") from error
            stack.callback(kafka.end)
            given["Kafka"] = kafka.wait_ready()
        if address is not None:
            given[address] = address
        else:
            ours = stack.enter_context(contextlib.closing(BrokerProcess(folder / "odradek", QUICK_GROUPS)))
            stack.callback(ours.terminate)
            given["Odradek"] = ours.wait_ready()
        yield given


def run_all(chosen: Sequence[Framework], addresses: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Build and run programs; return name to broker to `ok`, `failed` or `missing`."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek-frameworks"
    results: dict[str, dict[str, str]] = {}
    for framework in chosen:
        try:
            folder = built(framework, home)
        except BuildError as error:
            print(f"missing {framework.title} {framework.version}: {error}", flush=True)
            results[framework.name] = dict.fromkeys(addresses, "missing")
            continue
        results[framework.name] = {name: run(framework, folder, name, at) for name, at in addresses.items()}
    return results


def table(chosen: Sequence[Framework], results: Mapping[str, Mapping[str, str]], day: datetime.date) -> str:
    """Return the table of the documentation."""
    head = f"On {day.isoformat()}, with Apache Kafka {KAFKA_VERSION}:\n\n"
    rows = ["| framework | version | what its program uses | Odradek | Kafka |", "| --- | --- | --- | --- | --- |"]
    for each in chosen:
        link = f"[{each.title}](../../examples/frameworks/{each.name})"
        told = results[each.name]
        rows.append(f"| {link} | {each.version} | {each.shows} | {told['Odradek']} | {told['Kafka']} |")
    return head + "\n".join(rows) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="as --list shows them; all by default")
    parser.add_argument("--list", action="store_true", help="list the frameworks and end")
    parser.add_argument("--beside-kafka", action="store_true", help="run them against Apache Kafka first")
    parser.add_argument("--address", metavar="HOST:PORT", help="a broker that runs, instead of one of this checkout")
    parser.add_argument("--record", action="store_true", help=f"write {DOCUMENT.name}'s table; all, beside Kafka")
    asked = parser.parse_args(arguments)
    every = frameworks()
    if unknown := set(asked.names) - {each.name for each in every}:
        parser.error(f"no such framework: {', '.join(sorted(unknown))}; --list shows all")
    if asked.record and (asked.names or asked.address):
        parser.error("--record takes neither names nor an address: its table tells of all, on this broker and Kafka")
    chosen = [each for each in every if not asked.names or each.name in asked.names]
    if asked.list:
        for each in chosen:
            print(f"{each.name:14} {each.title} {each.version}: {each.shows}")
        return 0
    with brokers(asked.address, is_beside_kafka=asked.beside_kafka or asked.record) as addresses:
        results = run_all(chosen, addresses)
    if asked.record:
        today = datetime.datetime.now(tz=datetime.UTC).date()
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(TABLE.sub(lambda _: table(chosen, results, today), text), encoding="utf-8")
    return 0 if all(told == "ok" for each in results.values() for told in each.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
