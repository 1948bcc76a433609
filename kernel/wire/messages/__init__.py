"""Pure core: Kafka's messages, one module an API; `data_name.py` holds what travels inside records and requests."""
