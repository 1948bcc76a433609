"""The files that run a broker as a service: the image's steps work in plain folders, and what they name is there."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import yaml

from odradek.kernel.config.listeners import parse_listeners
from odradek.kernel.config.settings import read_settings
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataResponse
from tests.broker.broker_process import Client
from tools.ports import free_ports
from tools.render_configuration import own_registry

from .building import ROOT, Environment, plain_environment, run

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVICE = ROOT / "examples/service"
READY_LIMIT_S = 60


@attrs.frozen
class Image:
    """What a Dockerfile says of its last stage, and every step of all of them."""

    steps: list[tuple[str, str]]

    @classmethod
    def read(cls, path: Path) -> Image:
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
        return cls([(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())])

    def all(self, word: str) -> list[str]:
        return [rest for each, rest in self.steps if each == word]

    @property
    def variables(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for rest in self.all("ENV") for pair in rest.split())

    @property
    def health(self) -> list[str]:
        found: list[str] = json.loads(self.all("HEALTHCHECK")[0].partition(" CMD ")[2])
        return found

    @property
    def entry(self) -> list[str]:
        found: list[str] = json.loads(self.all("ENTRYPOINT")[0])
        return found


IMAGE = Image.read(SERVICE / "Dockerfile")
COMPOSE: dict[str, Any] = yaml.safe_load((SERVICE / "compose.yaml").read_text())


def pip_step(command: str) -> str:
    (found,) = [rest for rest in IMAGE.all("RUN") if command in rest]
    return found


def test_the_image_knows_no_other_steps() -> None:
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "VOLUME", "EXPOSE", "ENV", "HEALTHCHECK", "STOPSIGNAL"}

    assert {word for word, _ in IMAGE.steps} <= known | {"ENTRYPOINT"}
    assert IMAGE.all("USER") == ["odradek"]
    assert IMAGE.steps[-1][0] == "ENTRYPOINT"
    assert signal.Signals[IMAGE.all("STOPSIGNAL")[0]] is signal.SIGTERM


@pytest.mark.parametrize("variables", [IMAGE.variables, COMPOSE["services"]["odradek"]["environment"]], ids=str)
def test_every_variable_is_a_key_and_together_they_make_a_configuration(
    variables: dict[str, str], tmp_path: Path
) -> None:
    config = read_settings(environment=variables).resolve(own_registry(), data_dir=tmp_path)

    assert {listener.port for listener in parse_listeners(config)} <= {9092, 19092}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    """Carry out the image's two steps with pip: wheels from the checkout, and an installation without a registry."""
    folder = tmp_path_factory.mktemp("image")
    environment = Environment(folder / "venv")
    made = folder / "wheels"
    pip = f"{sys.executable} -m pip"
    building = pip_step("pip wheel").replace("/wheels", str(made)).replace("python -m pip", pip)
    installing = pip_step("pip install").replace("/wheels", str(made))
    installing = installing.replace("python -m pip", f"{pip} --python {environment.folder}/bin/python")
    run(["sh", "-ec", building], wheel.parents[1])
    run(["sh", "-ec", installing], folder)
    return environment


@attrs.frozen
class Service:
    """The image's entry point, on this machine."""

    process: subprocess.Popen[bytes]
    address: str
    health: list[str]

    def is_healthy(self) -> bool:
        return subprocess.run(self.health, check=False, capture_output=True).returncode == 0


@pytest.fixture
def service(installed: Environment, tmp_path: Path) -> Iterator[Service]:
    clients, observers = free_ports(2)
    ports = {":9092": f":{clients}", ":8080": f":{observers}", "/var/lib/odradek": str(tmp_path)}

    def here(text: str) -> str:
        for image, machine in ports.items():
            text = text.replace(image, machine)
        return text.replace("PLAINTEXT://:", "PLAINTEXT://127.0.0.1:").replace("0.0.0.0", "127.0.0.1")

    variables = {name: here(text) for name, text in IMAGE.variables.items()}
    programs = installed.folder / "bin"
    command = [str(programs / IMAGE.entry[0]), *IMAGE.entry[1:]]
    process = subprocess.Popen(command, env=plain_environment() | variables, stdin=subprocess.DEVNULL, cwd=tmp_path)
    address = variables["ODRADEK_ADVERTISED_LISTENERS"].partition("//")[2]
    health = [str(programs / IMAGE.health[0]), *map(here, IMAGE.health[1:])]
    yield Service(process, address, health)
    if process.poll() is None:
        process.kill()
        process.wait()


def test_what_the_image_installs_gets_healthy_serves_and_ends_by_the_image_s_signal(service: Service) -> None:
    deadline = time.monotonic() + READY_LIMIT_S  # noqa: TID251 - a limit for a broker that does not start
    while not service.is_healthy():
        assert service.process.poll() is None
        assert time.monotonic() < deadline  # noqa: TID251 - as above
        time.sleep(0.1)
    with Client(service.address) as client:
        answer = client.ask(MetadataRequest(topics=[]), 12)
    assert isinstance(answer, MetadataResponse)
    assert [f"{broker.host}:{broker.port}" for broker in answer.brokers] == [service.address]
    service.process.send_signal(signal.Signals[IMAGE.all("STOPSIGNAL")[0]])

    assert service.process.wait(30) == 0
    assert not service.is_healthy()


def test_compose_builds_this_image_and_gives_the_console_a_listener_of_the_broker_s() -> None:
    broker, console = COMPOSE["services"]["odradek"], COMPOSE["services"]["console"]
    bootstrap = console["environment"]["KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS"]

    assert (SERVICE / broker["build"]["context"]).resolve() == ROOT
    assert ROOT / broker["build"]["dockerfile"] == SERVICE / "Dockerfile"
    assert f"SERVICES://{bootstrap}" in broker["environment"]["ODRADEK_ADVERTISED_LISTENERS"]
    assert broker["volumes"] == [f"{name}:/var/lib/odradek" for name in COMPOSE["volumes"]]
    assert IMAGE.all("VOLUME") == ["/var/lib/odradek"]


def test_the_unit_s_broker_keeps_its_records_in_the_folder_that_systemd_makes(tmp_path: Path) -> None:
    unit = (SERVICE / "odradek.service").read_text()
    config = read_settings(config=SERVICE / "odradek.toml").resolve(own_registry(), data_dir=tmp_path)

    assert "ExecStart=/opt/odradek/bin/odradek serve --config /etc/odradek/odradek.toml\n" in unit
    assert "StateDirectory=odradek\n" in unit
    assert "StateDirectoryMode=0750\nUMask=0027\n" in unit  # records are the broker's alone
    assert config.log_dirs == ("/var/lib/odradek",)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
def test_systemd_finds_no_fault_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "odradek.service"
    unit.write_text((SERVICE / "odradek.service").read_text().replace("/opt/odradek/bin/odradek", sys.executable))

    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    found = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (found.returncode, found.stderr) == (0, "")
