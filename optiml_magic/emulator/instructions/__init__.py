"""One function per PTX instruction, found through the table in ``table.py``."""
