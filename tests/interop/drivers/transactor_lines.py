"""What every transactional producer shares: `program ADDRESS TRANSACTIONAL_ID`, operations as in `json_lines`.

| operation | what it does |
| --- | --- |
| `begin` | takes the transactional id if it has not, begins a transaction |
| `send`, topic, values | produces texts to partition 0 within it, waits until all are acknowledged |
| `end`, commit | commits or aborts |
| `transform`, group, source, target, end | reads, changes, produces; returns in how many transactions |

`transform` reads `source` 0 from where the group stands up to offset `end`, and produces each value with `!` behind it
to `target` 0, at most `BATCH` records a transaction, each of which commits the group's offset too. Whatever goes wrong
is aborted and done again, by a new producer where need be; `LIMIT_S` ends it where no test did before, brokers that
died and slow machines included. librdkafka and Java read what they assign to themselves and ask where the group stands
before each transaction; the others are members of the group, static ones under their transactional id where the library
knows static members.
"""

from __future__ import annotations

from typing import Final

BATCH: Final = 25
LIMIT_S: Final = 300
SESSION_MS: Final = 3_000
HEARTBEAT_MS: Final = 500
