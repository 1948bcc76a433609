"""The table of sessions: what is asked, one module an area."""

from __future__ import annotations

from . import (
    bodies,
    cluster,
    config_refusals,
    configs,
    consumer_groups,
    discovery,
    fetch,
    group_offsets,
    groups,
    offsets,
    produce,
    security,
    together,
    topics,
    transactions,
    unkept_groups,
)

SESSIONS = {
    session.__name__: session
    for module in (
        discovery,
        produce,
        fetch,
        offsets,
        topics,
        configs,
        config_refusals,
        cluster,
        groups,
        consumer_groups,
        group_offsets,
        transactions,
        security,
        unkept_groups,
        together,
        bodies,
    )
    for session in vars(module).values()
    if getattr(session, "__module__", None) == module.__name__ and not session.__name__.startswith("_")
}
