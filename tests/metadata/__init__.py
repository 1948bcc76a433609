"""Tests of the cluster metadata that every broker has."""
