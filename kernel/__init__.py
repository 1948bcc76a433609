"""The microkernel: everything a broker that serves is made of, except its policies, which are plugins."""
