"""The tests: one room for each room of the code, and those that see the whole."""
