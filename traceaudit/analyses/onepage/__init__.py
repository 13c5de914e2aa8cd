"""What a whole audit adds up to: the bound on kernel work, and what to fix first."""
