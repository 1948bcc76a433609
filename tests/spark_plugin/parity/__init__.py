"""What Spark's Kafka connector does, recorded, and what our data source does for the same inputs.

`connector.json` was recorded from the connector (`record.py` says how); `differences.toml` lists where we do something
else, each with its reason. Without the connector our source is held to what was recorded, and with it both are run.
"""
