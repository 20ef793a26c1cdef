"""What earlier runs learned: rates of rules and findings, and paths that won, by kind of kernel."""
