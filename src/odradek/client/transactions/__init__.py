"""Shell: transactions of a producer: `machine` is the pure core, `coordination` speaks to the coordinators.

.. versionadded:: 0.1
"""
