"""Who evaluates the candidates that a search asks for: one file an engine."""
