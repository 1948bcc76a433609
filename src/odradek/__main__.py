"""`python -m odradek` is the `odradek` command."""

from .kernel.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
