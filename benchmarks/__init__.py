"""What is measured, always against something in the same run; `python -m benchmarks` runs all of it."""
