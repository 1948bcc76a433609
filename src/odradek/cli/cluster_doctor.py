"""Shell: `odradek cluster doctor`: what is wrong with a cluster, in words, and what to do."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

from .actions import add_common_options, cluster_action
from .options import EXIT_STATUS, WIDTH, document, natural
from .output import plural, print_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from .cluster_calls import ClusterCalls
    from .doctor.observations import Finding

PAUSE_S: Final = 3
REQUEST_TIMEOUT_MS: Final = 4_000
_INDENT: Final = "    "


def _configure(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Say in words what is wrong with a cluster, and what to do. Looks at the replicas twice, some seconds apart: "
        "so it tells a replica that is stuck from one that is slow, one that is back and catches up, and one that a "
        "reassignment adds; and whether it is all of one broker that lags, as it is down, slow, or a disk of it "
        "failed.\n\n"
        "Brokers with metrics (odradek.http.listener) tell how busy they are. Where brokers run on this host, it is "
        "looked at, too: open files, swap, how long disks take (Linux; as far as this user may see).",
        [
            ("cluster doctor", "what is wrong, the worst first"),
            ("cluster doctor --json | jq '.findings[] | select(.severity == \"wrong\")'", "for a script"),
        ],
        exit_status=f"{EXIT_STATUS}; 1 too if something is wrong or may soon be; notes alone are 0",
    )
    parser.add_argument(
        "--pause", type=natural, default=PAUSE_S, metavar="S", help=f"seconds between the looks (default {PAUSE_S})"
    )
    add_common_options(parser)


async def _doctor(arguments: argparse.Namespace, calls: ClusterCalls) -> int:
    from .doctor.findings import findings_of
    from .doctor.looking import observe
    from .doctor.observations import Severity

    seen = await observe(calls, arguments.pause)
    found = findings_of(seen)
    if arguments.json:
        print_json({"brokers": len(seen.brokers), "findings": [each.as_json() for each in found]})
    else:
        partitions_count = sum(1 for _each in seen.after.partitions())
        _print(found, f"{plural(len(seen.brokers), 'broker')}, {plural(partitions_count, 'partition')}")
    return int(any(each.severity > Severity.NOTE for each in found))


def _print(found: Sequence[Finding], looked_at: str) -> None:
    if not found:
        print(f"nothing is wrong: {looked_at}, all replicas in sync")
        return
    for number, each in enumerate(found):
        if number:
            print()
        print(textwrap.fill(f"{each.severity.name.lower()}: {each.what}", WIDTH, subsequent_indent=_INDENT))
        print(textwrap.fill(f"-> {each.remedy}", WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT + "   "))
    print(f"\n{plural(len(found), 'finding')} in {looked_at}")


DOCTOR_ACTIONS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Any]]] = {
    "doctor": (
        "say what is wrong, and what to do",
        _configure,
        # Some broker may hang, and must not be waited for as by a client that wants something of it.
        cluster_action(_doctor, request_timeout_ms=REQUEST_TIMEOUT_MS),
    ),
}
