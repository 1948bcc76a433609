"""Tests of several brokers of one cluster; a package, so that they share how a simulated one is made."""
