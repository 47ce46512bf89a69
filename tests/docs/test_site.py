# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation site, as `make docs` makes it: its links lead somewhere, it needs no network, and it can be read.

It is made once, and opened in a browser as files. With PICTURES=folder, pictures of pages are left there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.tests.browser.chromium import CHROMIUM, driven, node_modules
from ansible_collections.kubenode.cpu_manager.tests.release.conftest import copied

from .pages import CHECKOUT

HERE = Path(__file__).resolve().parent
# Their addresses are loaded; those of all others are only offered.
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "object": "data"}
OFFERED = ("canonical", "search", "index", "next", "prev", "author", "license")
IN_STYLE = re.compile(r"""url\(\s*["']?([^"')]+)""")

WIDTHS = (400, 1400)
LEAST_TEXT = 12
# The home page, guides with code and with tables, the longest page, the page of a module, a list.
SHOWN = (
    "index",
    "docsite/getting_started",
    "docsite/throttling",
    "docsite/errors",
    "drift_info_module",
    "docsite/checks",
)
VIEWS = ["%s %d" % (name.rpartition("/")[2], width) for name in SHOWN for width in WIDTHS]
SEARCHES = {
    "full-pcpus-only": "docsite/concepts.html",
    "strict-cpu-reservation": "docsite/concepts.html",
    "checkpoint-refused": "docsite/checks.html",
    # As a kubelet prints it.
    'configured policy "static" differs from state checkpoint policy "none"': "docsite/errors.html",
}
# As a log in JSON has it.
LINE = r'{"message":"E1127 08:26:44.1 1 run.go:72] \"command failed\" err=\"start cpu manager error: could not restore'
LINE += r" state from checkpoint: checkpoint is corrupted, please drain this node and delete the CPU manager checkpoint"
LINE += r' file \\\"/var/lib/kubelet/cpu_manager_state\\\" before restarting Kubelet\""}'


class Page(HTMLParser):
    """What a page has: its anchors, where its links lead, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and "href" in given and given.get("rel") not in OFFERED:
            self.loaded.append(given["href"])
        if LOADED.get(tag, "") in given:
            self.loaded.append(given[LOADED[tag]])
        self.loaded += IN_STYLE.findall(given.get("style", ""))


class Site(NamedTuple):
    """The folder of a site, and its pages by their paths."""

    root: Path
    pages: dict[str, Page]

    def target(self, page: str, address: str) -> tuple[str, str]:
        """Return the path within the site that an address on a page leads to, and the anchor there."""
        path, anchor = urlsplit(address).path, unquote(urlsplit(address).fragment)
        file = (self.root / page).parent / unquote(path) if path else self.root / page
        return os.path.relpath(file, self.root), anchor


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    directory = tmp_path_factory.mktemp("site")
    # Where developers of Ansible have a checkout: no other target of make asks as much of the place.
    place = tmp_path_factory.mktemp("place")
    checkout = place / "ansible_collections" / "kubenode" / "cpu_manager"
    copied([], checkout)
    (checkout / ".venv").symlink_to(CHECKOUT / ".venv")
    # It is no part of a make that runs these tests.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "--old-file=.venv/.main", "--old-file=.venv/.testing", "docs", "SITE=%s" % directory],
        cwd=checkout,
        env={**environment, "HOME": str(place / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    root = directory / "build" / "html"
    paths = [path for path in root.rglob("*.html") if "_static" not in path.parts]
    return Site(root, {str(path.relative_to(root)): Page(path.read_text("utf-8")) for path in paths})


def is_elsewhere(address: str) -> bool:
    return bool(urlsplit(address).scheme or urlsplit(address).netloc)


def test_each_guide_and_each_module_has_a_page(site: Site) -> None:
    sections = yaml.safe_load((CHECKOUT / "docs/docsite/extra-docs.yml").read_text("utf-8"))["sections"]
    wanted = {"docsite/%s.html" % page for section in sections for page in section["toctree"]}
    wanted |= {"%s_module.html" % path.stem for path in (CHECKOUT / "plugins" / "modules").glob("*.py")}
    wanted |= {"%s_role.html" % path.name for path in (CHECKOUT / "roles").iterdir()}
    assert wanted - set(site.pages) == set()


def test_each_check_has_an_anchor(site: Site) -> None:
    """Reports, alerts and what explains a pasted line lead there."""
    assert set(CHECKS) - site.pages["docsite/checks.html"].anchors == set()


def test_every_link_leads_somewhere(site: Site) -> None:
    broken = []
    count = 0
    for name, page in site.pages.items():
        for address in page.links:
            if is_elsewhere(address):
                continue
            count += 1
            path, anchor = site.target(name, address)
            leads_to = site.pages.get(path)
            is_there = leads_to is not None or (site.root / path).is_file()
            if not is_there or (anchor and (leads_to is None or anchor not in leads_to.anchors)):
                broken.append("%s: %s" % (name, address))
    print("%d pages, %d links within the site" % (len(site.pages), count))
    assert broken == []
    assert count > 1000


def test_no_page_loads_anything_from_elsewhere(site: Site) -> None:
    for name, page in site.pages.items():
        for address in page.loaded:
            if not address.startswith("data:"):
                assert not is_elsewhere(address), "%s: %s" % (name, address)
                assert (site.root / site.target(name, address)[0]).is_file(), "%s: %s" % (name, address)
    for style in site.root.rglob("*.css"):
        for address in IN_STYLE.findall(style.read_text("utf-8")):
            assert address.startswith(("data:", "#")) or not is_elsewhere(address), "%s: %s" % (style.name, address)


def test_a_page_has_no_mark_up_of_its_source(site: Site) -> None:
    """What docutils does not know is left as it is, such as a role that is spelled wrongly."""
    for name in site.pages:
        text = (site.root / name).read_text("utf-8")
        assert not re.search(r":(?:ref|doc|ansplugin|ansopt|ansretval):`|\{\{ (?:page|section|version)\b", text), name
        assert "system-message" not in text, name


@pytest.fixture(scope="module")
def seen(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    job = tmp_path_factory.mktemp("job") / "job.json"
    pictures = os.environ.get("PICTURES")
    given = {
        "modules": str(node_modules()),
        "chromium": CHROMIUM,
        "pictures": os.path.abspath(pictures) if pictures else None,
        "pages": {name.rpartition("/")[2]: (site.root / (name + ".html")).as_uri() for name in SHOWN},
        "widths": WIDTHS,
        "search": (site.root / "search.html").as_uri(),
        "words": [*SEARCHES, "nosuchwordanywhere"],
        "errors": (site.root / "docsite/errors.html").as_uri(),
        "line": LINE,
    }
    job.write_text(json.dumps(given), encoding="utf-8")
    result: dict[str, Any] = driven(HERE / "site.js", job)
    return result


in_browser = pytest.mark.needs(CHROMIUM or "chromium", "node", "npm")


@in_browser
@pytest.mark.parametrize("view", VIEWS)
def test_a_page_fits_the_window(seen: dict[str, Any], view: str) -> None:
    assert seen["pages"][view]["width"] <= int(view.rpartition(" ")[2])
    assert seen["pages"][view]["text"] >= LEAST_TEXT


@in_browser
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(seen: dict[str, Any], view: str) -> None:
    found = seen["pages"][view]
    assert {"color-contrast", "document-title", "html-has-lang"} <= set(found["passed"]) | {
        rule["id"] for rule in found["violations"]
    }
    assert [rule for rule in found["violations"] if rule["impact"] in ("serious", "critical")] == []


@in_browser
def test_the_browser_loads_only_the_site(site: Site, seen: dict[str, Any]) -> None:
    assert seen["complaints"] == []
    assert {address for address in seen["requests"] if not address.startswith((site.root.as_uri(), "data:"))} == set()


@in_browser
@pytest.mark.parametrize(("words", "page"), SEARCHES.items())
def test_the_search_finds_a_page(seen: dict[str, Any], words: str, page: str) -> None:
    assert any(page in address for address in seen["searches"][words])


@in_browser
def test_the_search_finds_nothing_where_there_is_nothing(seen: dict[str, Any]) -> None:
    assert seen["searches"]["nosuchwordanywhere"] == []


@in_browser
def test_a_line_that_is_pasted_is_explained(site: Site, seen: dict[str, Any]) -> None:
    assert seen["explained"]["texts"] == ["checkpoint is corrupted"]
    (link,) = seen["explained"]["links"]
    assert link == (site.root / "docsite/checks.html").as_uri() + "#checkpoint-refused"
