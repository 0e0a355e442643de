"""The results site: results of many people and machines, submitted, checked, browsed and cited.

```text
uflip submit ─▶ api ─▶ intake ─▶ blobs (files by their digest)
                         │          └─▶ examiner: everything is computed again from the traces
                         └─▶ database ─▶ browse ─▶ pages, api, the explorer ─▶ uflip pull
```

==============  ====================================================================
`client`            submits a result folder without private values, and downloads one
`upload_files`      the files of an upload, and parts of them
`site`              the folder and the database of a site, and their common id
`app`               the server: routes, host check, limits, metrics for Prometheus
`api`               the routes for programs, described by OpenAPI
`pages`             the HTML pages
`figures`           figures of the pages
`browse`            lists, filters, devices and tables for `api` and `pages`
`rows`              the columns of a result: examined, stored, listed
`intake`            uploads, from the list of files to the stored result
`publishing`        publishes and withdraws results, and counts those of a device
`folders`           result folders: examined when made, rebuilt when lost
`examiner`          checks submitted folders in a process of its own
`blobs`             files by their digest, each once; the same in S3-compatible storage
`blob_refs`         references to files; unreferenced files are removed
`accounts`          tokens and their roles
`tables`            the database schema
`database`          opens and migrates a database
`backup`            backup into one folder, and restore
`seed`              the first results of a new site
==============  ====================================================================
"""
