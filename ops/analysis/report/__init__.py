"""What a run or an archive comes to: statistics over stored episodes, as tables, JSON, charts and one HTML page."""
