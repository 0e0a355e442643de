"""Validation of `uflip.analysis` on generated series of known truth, beside other stop rules."""
