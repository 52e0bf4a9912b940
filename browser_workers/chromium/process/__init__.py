"""One Chromium as a process: found, started or reached elsewhere, looked after, replaced, ended."""
