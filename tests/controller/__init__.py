"""Tests of the controller and its log; a package, so that they share a controller and a table of requests."""
