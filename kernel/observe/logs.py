"""Shell: where log lines go, and in which form."""

from __future__ import annotations

import logging
import sys


def configure_logging(verbosity: int) -> None:
    """Send log lines to standard error, one line each.

    Args:
        verbosity: 0 for warnings, 1 for what an operator wants to know, 2 for everything.
    """
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)]
    logging.basicConfig(
        level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
