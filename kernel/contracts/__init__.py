"""What a plugin implements: one module a contract, protocols and frozen values only."""
