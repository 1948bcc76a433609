"""Shell: prints the reference of the Spark source's and sink's options.

`python -m tools.render_spark_options > docs/reference/spark-options.md`; a test fails when the page is stale.
"""

from __future__ import annotations

import sys

from odradek.spark_plugin.options.option_reference import render_page


def main() -> None:
    """Print the page."""
    sys.stdout.write(render_page())


if __name__ == "__main__":
    main()
