"""Hold sessions drawn by chance with Apache Kafka and with our broker, and print where they answer differently.

    python -m tools.compare_by_chance                              20 sessions of every theme
    python -m tools.compare_by_chance data admin --sessions 200    two themes, more of each
    python -m tools.compare_by_chance data --first 17 --sessions 1 one session again, as it was printed

Starts Apache Kafka from the folder of peers (`ODRADEK_PEERS`, by default `../shared/peers`) and our broker, both with
the settings of `tests/differential/settings.toml`. A session is thirty requests that mostly fit together; it ends at
the first difference that `tests/differential/chance/known.toml` does not explain. Ends with status 1 if there is one.
Needs Java 17 or later.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.differential import brokers
from tests.differential.chance.lockstep import KNOWN, Finding, hold
from tests.differential.chance.themes import THEMES
from tests.differential.comparison import load_known

WIDTH = 1200


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("themes", nargs="*", metavar="THEME", help=f"of {', '.join(THEMES)}; all by default")
    parser.add_argument("--sessions", type=int, default=20, metavar="N", help="how many of each theme (20)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first one's seed (0)")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.themes) - set(THEMES):
        parser.error(f"no such theme: {', '.join(sorted(unknown))}; there are {', '.join(THEMES)}")
    known = load_known(KNOWN)
    found_count = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        brokers.kafka() as (version, host, port),
        brokers.odradek(Path(folder) / "data") as ours,
    ):
        addresses = [(host, port), ours]
        for theme in chosen.themes or THEMES:
            seeds = range(chosen.first, chosen.first + chosen.sessions)
            findings = [found for seed in seeds if (found := hold(theme, seed, addresses, known)) is not None]
            found_count += len(findings)
            print(f"{theme}: {len(seeds)} sessions with Apache Kafka {version}, {len(findings)} differ", flush=True)
            for finding in findings:
                print(_described(finding), flush=True)
    return 1 if found_count else 0


def _described(finding: Finding) -> str:
    kafka, ours = finding.steps
    lines = [
        f"  {finding.theme} --first {finding.seed} --sessions 1 | {kafka.name}",
        f"    asked  {dict(finding.fields)}",
        f"    Kafka  {kafka.answer}",
        f"    ours   {ours.answer}",
        *(f"    {found.path}: Kafka {found.kafka!r}, ours {found.ours!r}" for found in finding.differences),
    ]
    return "\n".join(line[:WIDTH] for line in lines)


if __name__ == "__main__":
    sys.exit(main())
