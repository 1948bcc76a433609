"""A queue of delayed records: due to the millisecond, any horizon, twenty bytes a record; see `README.md`."""
