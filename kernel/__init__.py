"""The microkernel: everything a broker needs except its policies, which are plugins."""
