"""The micro-benchmarks of uFLIP-OC: jobs over physical addresses, where the host places data.

They stand in the list of `uflip.microbench` beside those of uFLIP. Each lays its jobs out
(`layout`) and says what their logs say (`measure`): a result there is no mean of one run.

===========  ===========================================================
`jobs`       what a job may use, jobs by name, who has their logs
`series`     what is made of a log: response times, throughput
`scaling`    throughput at several degrees of parallelism
===========  ===========================================================
"""
