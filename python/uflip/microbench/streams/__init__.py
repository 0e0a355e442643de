"""Micro-benchmarks of write streams: those of NVMe's directive, and placement handles (FDP)."""
