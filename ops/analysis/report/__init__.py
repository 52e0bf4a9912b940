"""Reports on a run or an archive: statistics over stored episodes, as tables, JSON, charts and one HTML page."""
