"""Record what Apache Kafka answers in the sessions of the differential tests.

    python -m tools.record_differential                    every session
    python -m tools.record_differential 'produce_*' fetch  some sessions (shell patterns)
    python -m tools.record_differential --check            write nothing; fail if Kafka answers otherwise now
    python -m tools.record_differential --three            the sessions with three brokers

Starts Apache Kafka from the folder of peers (`ODRADEK_PEERS`, by default `../shared/peers`) with the settings of
`tests/differential/settings.toml`, holds the sessions with it, and writes `tests/differential/golden/SESSION.json`.
A file changes only when an answer changed; it says which version answered, and when. Needs Java 17 or later.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from tests.differential import brokers, golden
from tests.differential.cluster_talk import run_cluster_session
from tests.differential.comparison import compare
from tests.differential.conversation import Step, run_session
from tests.differential.sessions import SESSIONS
from tests.differential.three import THREE_SESSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", nargs="*", default=["*"], help="shell patterns of session names")
    parser.add_argument("--check", action="store_true", help="compare with the golden files, write nothing")
    parser.add_argument("--list", action="store_true", help="print the sessions and end")
    parser.add_argument(
        "--address", metavar="HOST:PORT", help="a Kafka that runs already, with the same settings; of three, all"
    )
    parser.add_argument("--three", action="store_true", help="the sessions with three brokers")
    chosen = parser.parse_args(arguments)
    table = THREE_SESSIONS if chosen.three else SESSIONS
    names = [name for name in table if any(fnmatchcase(name, pattern) for pattern in chosen.sessions)]
    if not names:
        parser.error("no session has such a name; --list shows them")
    if chosen.list:
        print("\n".join(names))
        return 0
    if chosen.address:
        return _hold(names, "a running broker", _holder(chosen.address.split(","), chosen.three), check=chosen.check)
    if chosen.three:
        with brokers.three_of_kafka() as (version, nodes):
            hold = partial(_hold_with_three, nodes=nodes)
            return _hold(names, f"Apache Kafka {version}, three brokers", hold, check=chosen.check)
    with brokers.kafka() as (version, host, port):
        hold = partial(_hold_with_one, address=(host, port))
        return _hold(names, f"Apache Kafka {version}", hold, check=chosen.check)


def _holder(addresses: Sequence[str], is_of_three: bool) -> Callable[[str], list[Step]]:
    found = [brokers.address_of(each) for each in addresses]
    if is_of_three:
        return partial(_hold_with_three, nodes=brokers.by_node(found))
    return partial(_hold_with_one, address=found[0])


def _hold_with_one(name: str, *, address: tuple[str, int]) -> list[Step]:
    return run_session(name, SESSIONS[name], *address)


def _hold_with_three(name: str, *, nodes: Mapping[str, tuple[str, int]]) -> list[Step]:
    return run_cluster_session(name, THREE_SESSIONS[name], nodes)


def _hold(names: list[str], broker: str, hold: Callable[[str], list[Step]], *, check: bool) -> int:
    origin = f"{broker}, recorded {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    failed = 0
    for name in names:
        steps = hold(name)
        broken = [step for step in steps if step.api == "Session"]
        if broken:
            failed += 1
            print(f"{name}: {broken[0].note}: {broken[0].answer}", file=sys.stderr)
        elif check:
            failed += _check(name, steps)
        else:
            print(f"{name}: {len(steps)} steps{'' if golden.save(name, steps, origin) else ', as before'}")
    return 1 if failed else 0


def _check(name: str, steps: list[Step]) -> bool:
    differences = compare(name, golden.load(name), steps)
    for difference in differences:
        print(difference, file=sys.stderr)
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
