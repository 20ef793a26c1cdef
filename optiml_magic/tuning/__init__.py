"""Numbers of one structure: which point of its space is measured next. Pure."""
