"""What records the traces in this folder: a decoder, its loops, kernels with known work."""
