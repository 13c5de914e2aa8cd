"""Pure analyses: (trace or result, options) in, frozen result out. No I/O, no printing, no clock."""
