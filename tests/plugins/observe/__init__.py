"""Metrics, logs, and the pages that are served over HTTP."""
