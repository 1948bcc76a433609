"""Work that waits: a hierarchical timing wheel, and operations that a condition or the time completes, once."""
