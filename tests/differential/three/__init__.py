"""The table of sessions with three brokers: what is asked, one module an area."""

from __future__ import annotations

from . import coordinating, leading, moving, telling

THREE_SESSIONS = {
    session.__name__: session
    for module in (telling, leading, moving, coordinating)
    for session in vars(module).values()
    if getattr(session, "__module__", None) == module.__name__ and not session.__name__.startswith("_")
}
"""Name to session; each uses topics, groups and ids that begin with its name."""
