"""Kafka's messages, one module an API: `api_NN_name.py`; `data_name.py` holds what travels inside records and requests."""
