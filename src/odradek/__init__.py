"""Odradek: an event-streaming system that speaks Kafka's wire protocol, wound from interchangeable parts."""

__version__ = "0.1.0"
