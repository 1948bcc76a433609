"""Work that waits: a timing wheel, operations that a condition or the time completes, once; how long things took."""
