"""The results site: results of many people and machines, submitted, checked, browsed and cited.

```text
uflip submit ─▶ api ─▶ intake ─▶ blobs (files by their digest)
                         │          └─▶ examiner: everything is computed again from the traces
                         └─▶ database ─▶ browse ─▶ pages, api, the explorer ─▶ uflip pull
```

==============  ====================================================================
`redaction`     what of a result leaves a machine, and what stays
`client`        submitting a folder, and fetching one
`serving`       a server: what it keeps, who is answered
`site`          folder and database together
`app`           who is answered, how much is taken, what is counted
`api`           the addresses that programs use, described by OpenAPI
`pages`         the addresses that people use
`explored`      the explorer over what is published
`browse`        lists, filters, devices, tables: what both show
`intake`        from a list of files to a result that is kept
`folders`       a result as a folder: looked at when it is made, made again where it is lost
`offer`         the files of an upload: their names, digests and lengths
`examiner`      a process of its own that looks at what strangers sent
`blobs`         files by their digest, each once
`claims`        who needs a file; those that nobody needs are removed
`accounts`      tokens and what they allow
`tables`        what the database holds
`database`      opening one, and bringing it to this version
`backup`        all of it into one folder, and back
==============  ====================================================================
"""
