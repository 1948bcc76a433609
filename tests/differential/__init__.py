"""Differential tests: the same frames to Apache Kafka and to Odradek, the answers compared field by field.

`sessions/` holds what is asked, `golden/` what Apache Kafka answered (recorded by
`python -m tools.record_differential`), `differences.toml` what we answer otherwise, and why. The tests need no Java.
"""
