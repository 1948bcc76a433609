"""Shipped for tests: brokers in process, fixtures, contract kits, fault injection."""
