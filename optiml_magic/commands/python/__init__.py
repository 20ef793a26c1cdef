"""Python around a kernel that was pasted with it: its strings, its arrays and its launches."""
