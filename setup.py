"""Builds the optional compiled record kernel; everything else about the package stands in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        # Optional: where it cannot be compiled, a warning is printed and records are walked in Python.
        Extension("odradek.kernel.records._kernel", ["kernel/records/_kernel.c"], optional=True),
    ],
)
