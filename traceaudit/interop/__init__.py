"""Other tools and machines: what needs packages beyond the base is imported only inside."""
