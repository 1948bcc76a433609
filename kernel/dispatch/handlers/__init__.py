"""One file an API that the kernel answers: the listing of this folder is the table of what it can do."""
