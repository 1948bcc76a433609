"""Shell: lets time pass for all brokers of a test's cluster at once: they share a clock, and each has a run of its own.

::

    all at rest -> set the clock forward to what is due first anywhere -> whoever is connected has just spoken -> ...

At rest means: each broker is (`passing_time.py`), and none has sent or got a byte since it was looked at before. Where
somebody is not heard of, cut off or paused, a session's time passes in small steps first: the controller takes a long
one for a pause of its own, and would give everybody a new session. All others are kept by just that.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from .passing_time import STEPS_MAX
from .presence import check_names
from .virtual_time import SharedTime

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .advanced_clock import AdvancedClock
    from .virtual_time import Settled

SMALL_STEP_S: Final = 0.25
"""Half of what the controller takes for a pause of its own: `controller.session_watch.LATE_MS_MIN`."""
CALM: Final = 2
"""So many looks in succession without any traffic are rest."""
STEP_LOOKS_MAX: Final = 20
END_LOOKS_MAX: Final = 400
"""How often the brokers may be looked at after a step, and at the end: clients may never stop asking."""


class ClusterTime:
    """Advances the clock of several brokers. Owned by the test's thread."""

    def __init__(self, clock: AdvancedClock) -> None:
        """Take the clock that they have in common."""
        self._clock = clock

    def advance(
        self, nodes: Sequence[SharedTime], duration_ms: int, *, silent: Collection[str], in_small_steps_ms: int
    ) -> None:
        """Let time pass, and return when what became due is done.

        Args:
            nodes: The brokers, at least one: those that run.
            duration_ms: How much, at least 0.
            silent: By their names the clients and members that are not heard meanwhile.
            in_small_steps_ms: For how much of it steps are small.

        Raises:
            ValueError: Nobody of such a name was ever here.
        """
        check_names(silent, frozenset().union(*(node.names() for node in nodes)))
        with ThreadPoolExecutor(len(nodes), "odradek cluster time") as threads:
            looks = _Looks(nodes, threads)
            try:
                for node in nodes:
                    node.silence(silent)
                self._pass(looks, nodes, duration_ms / 1000, in_small_steps_ms / 1000)
            finally:
                for node in nodes:
                    node.hear_all()

    def _pass(self, looks: _Looks, nodes: Sequence[SharedTime], left_s: float, small_s: float) -> None:
        long_step_s = left_s / STEPS_MAX
        due_s = looks.until_at_rest(STEP_LOOKS_MAX)
        while left_s > 0:
            shortest_s = min(SMALL_STEP_S, long_step_s) if small_s > 0 else long_step_s
            step_s = min(left_s, max(due_s, shortest_s))
            self._step(nodes, step_s)
            left_s -= step_s
            small_s -= step_s
            due_s = looks.until_at_rest(STEP_LOOKS_MAX)
        looks.until_at_rest(END_LOOKS_MAX)

    def _step(self, nodes: Sequence[SharedTime], seconds: float) -> None:
        try:
            for node in nodes:
                node.hold()
            self._clock.advance(seconds)
            for node in nodes:
                node.keep()
        finally:
            for node in nodes:
                node.go_on()


class _Looks:
    """Looks at all brokers at once, by threads of the test's."""

    def __init__(self, nodes: Sequence[SharedTime], threads: ThreadPoolExecutor) -> None:
        self._nodes = nodes
        self._threads = threads

    def _look(self) -> list[Settled]:
        return list(self._threads.map(SharedTime.settle, self._nodes))

    def until_at_rest(self, looks_max: int) -> float:
        """Wait until nobody has anything to do, and return in how many seconds somebody will."""
        seen = self._look()
        quiet = 0
        for _ in range(looks_max):
            before, seen = seen, self._look()
            is_quiet = [node.bytes_count for node in before] == [node.bytes_count for node in seen]
            quiet = quiet + 1 if is_quiet else 0
            if quiet == CALM:
                break
        return min(node.due_s for node in seen)
