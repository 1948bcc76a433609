"""Data directories that outlive the version that wrote them."""
