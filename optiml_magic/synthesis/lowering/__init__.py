"""Expression graphs made into kernels: what is stored, which thread computes what, and the text."""
