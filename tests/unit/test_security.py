# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page on security names the tests that hold its promises: each exists, and no threat is without one."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent.parent
PAGE = CHECKOUT / "docs" / "docsite" / "rst" / "security.rst"
NAMED = re.compile(r"`(tests/[^`:]+\.py)::(\w+)`")
THREATS = ("Other users", "Pods", "The answers of a compromised node", "A hostile", "Two operators")


def missing(text: str) -> list[str]:
    """Return the tests named in a text that do not exist."""
    found = []
    for file, name in NAMED.findall(text):
        path = CHECKOUT / file
        if not path.is_file() or not re.search(r"^def %s\(" % name, path.read_text(encoding="utf-8"), re.MULTILINE):
            found.append("%s::%s" % (file, name))
    return found


def test_all_tests_that_are_named_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(NAMED.findall(text)) >= 25
    # Nothing looks like the name of a test, and is none.
    assert text.count("::") == len(NAMED.findall(text))
    assert missing(text) == []


def test_each_threat_has_a_test() -> None:
    _before, *sections = re.split(r"^(.+)\n~~~+\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(sections) == 2 * len(THREATS)
    for title, section, threat in zip(sections[::2], sections[1::2], THREATS):
        assert title.startswith(threat)
        assert NAMED.search(section), threat


def test_what_does_not_exist_is_found() -> None:
    assert missing("`tests/unit/test_security.py::test_nothing` and `tests/unit/nothing.py::test_it`") == [
        "tests/unit/test_security.py::test_nothing",
        "tests/unit/nothing.py::test_it",
    ]
