"""Sphinx settings. Built by `make docs` with warnings as errors."""

project = "Headgate"
author = "The Headgate maintainers"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # SQL and options in the text keep their quotes and dashes.
html_theme = "furo"
html_title = "Headgate"
exclude_patterns = ["_build"]
html_static_path = ["_static"]
