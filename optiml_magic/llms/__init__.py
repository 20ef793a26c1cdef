"""Language models behind one seam; what is said to them is the proposers' matter."""
