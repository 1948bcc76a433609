"""Pure core: the room of the coordinator runtime: replicated state machines kept in internal topics."""
