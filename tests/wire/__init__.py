"""Tests of odradek.kernel.wire."""
