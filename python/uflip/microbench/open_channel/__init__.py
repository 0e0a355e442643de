"""The micro-benchmarks of uFLIP-OC: jobs over physical addresses, where the host places data.

They are in the registry of `uflip.microbench` beside those of uFLIP. Each lays out its jobs
(`layout`) and evaluates their logs (`measure`): a result is more than the mean of one run.

===========  ===========================================================
`jobs`       limits of jobs, jobs by name, the source of their logs
`series`     response times and throughput from a log
`scaling`    throughput at several degrees of parallelism
===========  ===========================================================
"""
