"""Spark imports every top-level module of such a name; so `format("odradek")` is found without being registered."""

from odradek.spark_plugin import DefaultSource, register

__all__ = ["DefaultSource", "register"]
