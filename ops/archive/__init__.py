"""Runs as files: the archiver copies what a run's streams hold before it ages out, and it can be read, imported and exported.

An archive keeps every message byte for byte. `episodes` says what a stored episode is; `stream_source` and `archive_source`
read one from a run's streams or from an archive's files; everything else is written against that.
"""
