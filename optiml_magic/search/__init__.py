"""Tree search over edits. Knows ``model/`` and two functions; nothing of CUDA."""
