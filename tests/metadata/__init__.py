"""Tests of the cluster metadata; a package, so that they share a controller and a table of requests."""
