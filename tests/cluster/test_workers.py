"""What a worker that fails tells who watches it."""

from __future__ import annotations

import pytest

from tests.waiting import until

from .workers import Worker


class Failing(Worker):
    patience_s = 10.0
    hung = "it goes on"

    def work(self) -> None:
        raise OSError("no more")


def test_what_ends_a_worker_too_early_is_raised_where_it_is_waited_for_and_in_the_end() -> None:
    worker = Failing()
    with pytest.raises(OSError, match="no more"), worker.running(), pytest.raises(OSError, match="no more"):
        until(lambda: False, worker.check_works)
