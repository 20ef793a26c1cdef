"""Runs as things that last: a file of one, a list of all, two beside each other."""
