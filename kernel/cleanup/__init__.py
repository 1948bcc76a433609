"""Carries out what cleanup policies plan: deletes segments, rewrites them, beside the reactor."""
