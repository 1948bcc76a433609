"""Three broker processes for an hour: everything befalls them in turn, under real clients and a checker.

A round is a new cluster, of three brokers that are controllers, too. In an order that is drawn, one of them is killed,
the controller is killed, one is stopped and started, stands still, is slow, is cut off, is drained, loses a log
directory, has a full disk. The next comes when all is in sync again. Then nothing that was acknowledged is lost,
doubled or out of order, and what is read of transactions is what was committed. Every other round all of it is TLS.

    tox -e soak
    ODRADEK_SOAK_MINUTES=5 ODRADEK_SOAK_FILE=soak.jsonl pytest -m sweep --log-cli-level=INFO tests/cluster/test_soak.py

Rounds go on until the file has an hour of them, or so many minutes. It has a line for each, and what it has is not done
again.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import time
from pathlib import Path

import pytest

from .billing import Bills, create_topics
from .soak_ledger import Ledger, Round
from .soak_machines import Machines, disk_or_none, spots
from .test_real_faults import Load, await_agreement, check, read_all
from .test_secured_brokers import Authority

log = logging.getLogger(__name__)

MINUTES = float(os.environ.get("ODRADEK_SOAK_MINUTES", "60"))


def run_round(number: int, folder: Path) -> Round:
    """Have everything happen once, and look for what was told."""
    folder.mkdir(parents=True)
    began = time.perf_counter()
    chance = random.Random(number)
    is_secured = number % 2 == 0
    done: list[tuple[str, float]] = []
    with spots() as places, disk_or_none(folder / "3") as disk:
        machines = Machines(places, folder, disk, Authority(folder) if is_secured else None)
        bootstrap, security = machines.bootstrap, machines.security
        with machines.serving():
            create_topics(bootstrap, security)
            machines.wait_whole()
            load, bills = Load(bootstrap, security), Bills(bootstrap, security)
            with load.running(), bills.running():
                for kind in chance.sample(sorted(machines.accidents), len(machines.accidents)):
                    load.await_more()
                    since = time.perf_counter()
                    log.info("round %d: %s", number, kind)
                    machines.accidents[kind](load.await_more, chance)
                    machines.wait_whole()
                    done.append((kind, round(time.perf_counter() - since, 1)))
                load.await_more()
            await_agreement(bootstrap, security)
            assert load.failures == []
            check(read_all(bootstrap, security), load.acknowledged)
            bills.check()
    return {
        "round": number,
        "tls": is_secured,
        "seconds": round(time.perf_counter() - began, 1),
        "accidents": done,
        "acknowledged": sum(map(len, load.acknowledged)),
        "committed": len(bills.committed),
        "failure": "",
    }


@pytest.mark.sweep
def test_whatever_befalls_three_brokers_for_an_hour_what_clients_were_told_holds(tmp_path: Path) -> None:
    ledger = Ledger(Path(os.environ.get("ODRADEK_SOAK_FILE", tmp_path / "soak.jsonl")))
    while ledger.seconds < MINUTES * 60:
        number = ledger.next_round
        folder = tmp_path / f"round-{number}"
        began = time.perf_counter()
        try:
            done = run_round(number, folder)
        except BaseException as error:
            spent = round(time.perf_counter() - began, 1)
            if isinstance(error, Exception):
                ledger.add(failed(number, spent, f"{type(error).__name__}: {error}"))
            raise
        ledger.add(done)
        log.info("%s", json.dumps(done))
        shutil.rmtree(folder)
    log.info("%s", json.dumps(ledger.summary))


def failed(number: int, seconds: float, failure: str) -> Round:
    return {
        "round": number,
        "tls": number % 2 == 0,
        "seconds": seconds,
        "accidents": [],
        "acknowledged": 0,
        "committed": 0,
        "failure": failure,
    }


def went_well(number: int) -> Round:
    return {**failed(number, 90.0, ""), "accidents": [("a disk is full", 4.0)], "acknowledged": 10, "committed": 2}


def test_a_soak_goes_on_behind_the_last_whole_line_and_does_again_what_failed(tmp_path: Path) -> None:
    path = tmp_path / "soak.jsonl"
    ledger = Ledger(path)
    assert ledger.next_round == 1
    ledger.add(went_well(1))
    ledger.add(failed(2, 5.0, "AssertionError: lost"))
    assert ledger.next_round == 2
    with path.open("a") as file:
        file.write('{"round": 2, "tls"')

    again = Ledger(path)
    assert again.next_round == 2
    again.add(went_well(2))
    assert Ledger(path).next_round == 3
    assert Ledger(path).summary == {
        "rounds": 2,
        "failed": 1,
        "minutes": 3.0,
        "acknowledged": 20,
        "committed": 4,
        "accidents": {"a disk is full": 2},
    }
