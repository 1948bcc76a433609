"""Groups of the classic protocol: the leader among the members assigns, the coordinator only keeps them in step."""
