"""What all tests share: how hard Hypothesis looks.

| profile | for | examples |
|---|---|---|
| default | work at a test: new examples with every run | 100 |
| gate | `tox`: the same examples with every run | 100 |
| sweep | `tox -e sweep`: new examples, many of them | 2,000 |

No deadline anywhere: a slow machine is no failing test.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("gate", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("sweep", deadline=None, max_examples=2_000)
settings.load_profile("default")
