"""The results site: results of many people and machines, submitted, checked, browsed and cited.

```text
uflip submit ─▶ api ─▶ intake ─▶ blobs (files by their digest)
                         │          └─▶ examiner: everything is computed again from the traces
                         └─▶ database ─▶ browse ─▶ pages, api, the explorer ─▶ uflip pull
```

==============  ====================================================================
`redaction`         removes private values before a result leaves the machine
`client`            submits a result folder, and downloads one
`serving`           runs the server
`site`              the folder and the database of a site
`app`               the ASGI application: host check, rate limit, metrics
`api`               the routes for programs, described by OpenAPI
`pages`             the HTML pages
`explorer`          the explorer over published results
`browse`            lists, filters, devices and tables for `api` and `pages`
`intake`            uploads, from the list of files to the stored result
`folders`           result folders: examined when made, rebuilt when lost
`upload_manifest`   the files of an upload: names, digests and lengths
`examiner`          checks submitted folders in a process of its own
`blobs`             files by their digest, each once
`blob_refs`         references to files; unreferenced files are removed
`accounts`          tokens and their roles
`tables`            the database schema
`database`          opens and migrates a database
`backup`            backup into one folder, and restore
==============  ====================================================================
"""
