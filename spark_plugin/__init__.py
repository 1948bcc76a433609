"""PySpark data source for topics; a later release fills this room."""
