"""What kernels must move and compute: models by op, by compiler metadata, by user file and by model configuration.

Everything counts compulsory traffic: each input read once, each output written once, as if caches were perfect. What a
kernel really moves can only be more (re-reads), except where data never leaves the cache; `analyses.bandwidth` says so.
"""
