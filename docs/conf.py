"""The documentation as a site: `make docs` writes it to build/site, which opens without a server or a network."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

project = "Millrace"
version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx_copybutton"]
myst_heading_anchors = 4
"""Headings down to this level have the anchors that code hosts give them, so that links work there and here."""

html_theme = "furo"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2a55c9", "color-brand-content": "#2a55c9"},
    "dark_css_variables": {"color-brand-primary": "#93b4ff", "color-brand-content": "#93b4ff"},
}
"""The accents of `ops/web/static/base.css`."""
html_title = f"Millrace {version}"
html_favicon = str(ROOT / "ops/web/static/icon.svg")
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
