"""The live view of a running search; importing this package loads no widget library."""
