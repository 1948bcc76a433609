"""What works under real brokers while a test does something to them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager


class Worker(ABC):
    """Works on a thread of its own until it is told to end: then `is_ending` is set, and it ends what it has begun.

    Attributes:
        patience_s: So long it may take to end.
        hung: What is wrong if it does not.
    """

    patience_s: float
    hung: str

    def __init__(self) -> None:
        self.is_ending = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        try:
            self.work()
        except Exception as error:  # raised where somebody looks
            self._error = error

    def check_works(self) -> None:
        """Raise what ended it too early."""
        if self._error is not None:
            raise self._error

    @abstractmethod
    def work(self) -> None:
        """Work until `is_ending`."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let it work while the block runs, and end then."""
        self._thread.start()
        try:
            yield
        finally:
            self.is_ending.set()
            self._thread.join(self.patience_s)
        self.check_works()
        assert not self._thread.is_alive(), self.hung
