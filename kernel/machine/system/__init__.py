"""This system: what a real machine gives; a simulator brings another in its place."""
