"""Tests of odradek.kernel.dispatch."""
