"""The method of `uflip.analysis` against series whose truth is known, beside other rules."""
