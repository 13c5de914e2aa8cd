"""What one decode step of a language model must read and compute: from a config's fields to bytes and FLOP per rank."""
