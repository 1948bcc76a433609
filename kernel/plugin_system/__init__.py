"""How plugins are found, checked and asked: the idea of the microkernel."""
