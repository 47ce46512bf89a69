# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration of Sphinx for the documentation site: see the target docs of the Makefile.

antsibull-docs writes a page for each module, role, filter and test, and copies the guides of docs/docsite/rst. The
pages beside this file are templates: they list what is there.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from docutils import nodes
from jinja2 import Environment, StrictUndefined
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

HERE = Path(__file__).resolve().parent
COLLECTION = HERE.parents[1]
EXTRA_DOCS = COLLECTION / "docs" / "docsite" / "extra-docs.yml"
GALAXY = yaml.safe_load((COLLECTION / "galaxy.yml").read_text("utf-8"))
TEMPLATES = [path.stem for path in HERE.glob("*.rst")]
# The page with a field for a line of a log, what fills it in, and what explains the line.
PAGE_OF_ERRORS = "docsite/errors"
TABLE_OF_REFUSALS = "refusals_table.js"
TITLE = re.compile(r"^kubenode\.cpu_manager\.(\w+) (\w+) -- (.+)\n\++\n", re.MULTILINE)
# Labels of other sites. A link to one of them is its text: a build needs no network, and a site no other one.
ELSEWHERE = re.compile(r"ansible_collections\.(?!kubenode\.cpu_manager\.)|(common_return_values|action_plugins)$")
# (part of a page, what Sphinx and the theme write, what stands there instead)
ACCESSIBLE = (
    ("furo_navigation_tree", 'role="heading"', 'role="heading" aria-level="2"'),
    ("body", '<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    ("body", '<div class="highlight"><pre>', '<div class="highlight"><pre tabindex="0">'),
)
CONTENTS = re.compile(r"^\.\. contents::\n(?: +:.*\n)+", re.MULTILINE)

project = "%(namespace)s.%(name)s" % GALAXY
release = GALAXY["version"]
copyright = "the %s developers" % project  # noqa: A001
extensions = ["sphinx_antsibull_ext"]
# antsibull-docs writes it for collections that have none, too.
exclude_patterns = ["environment_variables.rst"]
highlight_language = "text"
nitpicky = True
smartquotes = False

html_theme = "furo"
antsibull_ext_color_scheme = "default-autodark"  # as the theme
html_title = project
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_use_index = False


class Page(NamedTuple):
    """A page that antsibull-docs has made."""

    document: str
    name: str
    kind: str
    summary: str


def pages(source: Path) -> list[Page]:
    """Return the pages of modules, roles, filters and tests, by their first headings."""
    found = []
    for path in sorted(source.glob("*_*.rst")):
        title = TITLE.search(path.read_text("utf-8"))
        if title:
            found.append(Page(path.stem, *title.groups()))
    return found


def fill_in(app: Sphinx, document: str, source: list[str]) -> None:
    """Fill in a template; take out what antsibull-docs writes and the theme has at the side: the contents of a page."""
    source[0] = CONTENTS.sub("", source[0])
    if document in TEMPLATES:
        environment = Environment(undefined=StrictUndefined, trim_blocks=True, autoescape=False)
        sections = yaml.safe_load(EXTRA_DOCS.read_text("utf-8"))["sections"]
        source[0] = environment.from_string(source[0]).render(
            pages=pages(Path(app.srcdir)), sections=sections, version=release
        )


def text_of(_app: Sphinx, _env: BuildEnvironment, node: nodes.Element, content: nodes.Element) -> nodes.Element | None:
    """Return the text of a link to another site; nothing for a broken one of this site, of which Sphinx then warns."""
    return content if ELSEWHERE.match(node["reftarget"]) else None


def make_accessible(
    _app: Sphinx, _document: str, _template: str, context: dict[str, Any], _tree: nodes.document | None
) -> None:
    """Say the level of headings in the navigation, and let the keyboard reach what is wider than the window."""
    for name, old, new in ACCESSIBLE:
        if name in context:
            context[name] = context[name].replace(old, new)


def add_field(
    app: Sphinx, document: str, _template: str, _context: dict[str, Any], _tree: nodes.document | None
) -> None:
    """Give the page of errors a field for a line of a log."""
    if document == PAGE_OF_ERRORS:
        app.add_js_file(TABLE_OF_REFUSALS)
        app.add_js_file("refusals.js")


def copy_sources(app: Sphinx) -> None:
    """Put the templates, and the pictures of the guides, where antsibull-docs has put the guides.

    The table of refusals becomes a script, which a browser also loads from a file.
    """
    for name in TEMPLATES:
        shutil.copy(HERE / (name + ".rst"), app.srcdir)
    images = COLLECTION / "docs" / "docsite" / "rst" / "images"
    shutil.copytree(images, Path(app.srcdir) / "docsite" / "images", dirs_exist_ok=True)
    table = (COLLECTION / "plugins" / "plugin_utils" / "refusals.json").read_text("utf-8")
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    (static / TABLE_OF_REFUSALS).write_text("const REFUSALS = %s;\n" % table, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", copy_sources)
    app.connect("source-read", fill_in)
    app.connect("missing-reference", text_of)
    app.connect("html-page-context", add_field)
    # After the theme has made the navigation.
    app.connect("html-page-context", make_accessible, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
