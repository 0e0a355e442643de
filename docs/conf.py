"""The documentation as a web site, made by Sphinx. `make docs` builds it into build/docs.

The pages are plain Markdown that a code host can show as well. The navigation follows from the
lists in README.md of this folder and of design/: each list becomes a part of the contents.
"""

import re

import uflip

project = "uflip"
author = "the uflip developers"
version = release = uflip.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
root_doc = "docs/README"
include_patterns = [
    "docs/**",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "tests/hostile/README.md",
]

myst_heading_anchors = 4
# A test executes the notebook and compares its stored output.
nb_execution_mode = "off"
numpydoc_show_class_members = False
default_role = "code"
autodoc_typehints = "none"
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = f"uflip {version}"
html_copy_source = False
html_additional_pages = {"index": "redirect.html"}
templates_path = ["site"]

CONTENTS = ("docs/README", "docs/design/README", "CONTRIBUTING")
LINK = re.compile(r"\]\(([^)#:]+)\.(?:md|ipynb)\)")


def add_contents(_app, page, source):
    """Append a hidden table of contents to each section of a page that lists other pages."""
    if page not in CONTENTS:
        return
    sections = re.split(r"(?m)^(?=## )", source[0])
    source[0] = "\n".join(section + _contents(section) for section in sections)


def _contents(section):
    pages = LINK.findall(section)
    if not pages:
        return ""
    title = re.match(r"## (.*)", section)
    caption = f":caption: {title[1]}\n" if title else ""
    return f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(dict.fromkeys(pages)) + "\n```\n"


def setup(app):
    """Register the table of contents with Sphinx."""
    app.connect("source-read", add_contents)
