# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Say how each part of the tests ended and what did not run, and add up pytest's results into one closing line:

python tests/running/summary.py DIRECTORY_OF_JUNIT_FILES BEGAN [PART_THAT_PASSED ...] [--rest COMMAND]

BEGAN: when the tests began, in seconds since 1970.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Iterable
from xml.etree import ElementTree

# {kind of lack, see lacking.py: how it is told}
LACKS = {
    "tool": "for lack of a tool",
    "kubernetes": "for lack of Kubernetes",
    "": "as they do not apply here",
}


def figures(suites: Iterable[ElementTree.Element]) -> Counter[str]:
    """Return how many tests passed, failed and were skipped."""
    counted = Counter({"passed": 0, "failed": 0, "skipped": 0})
    for suite in suites:
        tests, skipped, failures, errors = (
            int(suite.get(name, 0)) for name in ("tests", "skipped", "failures", "errors")
        )
        counted.update(passed=tests - skipped - failures - errors, failed=failures + errors, skipped=skipped)
    return counted


def line(counted: Counter[str]) -> str:
    return ", ".join("%d %s" % (number, what) for what, number in counted.items())


def clock(seconds: float) -> str:
    """Return a text with the minutes and seconds."""
    return "%d:%02d" % divmod(round(seconds), 60)


def not_run(suites: Iterable[ElementTree.Element]) -> dict[str, Counter[str]]:
    """Return {kind of lack: {reason: how many tests were skipped for it}}"""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in LACKS}
    for suite in suites:
        for case in suite.iter("testcase"):
            kinds = [item.get("value", "") for item in case.iter("property") if item.get("name") == "lacking"]
            for skipped in case.iter("skipped"):
                found[kinds[0] if kinds else ""][skipped.get("message", "")] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Add up the results of the tests.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("began", type=float)
    parser.add_argument("passed", nargs="*")
    parser.add_argument("--rest", default="")
    given = parser.parse_args()
    suites = {
        file.stem: list(ElementTree.parse(file).iter("testsuite")) for file in sorted(given.directory.glob("*.xml"))
    }
    everything = [suite for part in suites.values() for suite in part]
    print()
    for part in given.passed:
        print("%s: passed" % part)
    for part, of_part in suites.items():
        seconds = sum(float(suite.get("time", 0)) for suite in of_part)
        print("%s: %s, in %s" % (part, line(figures(of_part)), clock(seconds)))
    for kind, reasons in not_run(everything).items():
        if reasons:
            told = "; ".join("%s (%d)" % (reason, number) for reason, number in sorted(reasons.items()))
            print("Not run, %s: %s" % (LACKS[kind], told))
    total = figures(everything)
    print("%s, in %s" % (line(total), clock(time.time() - given.began)))
    if given.rest:
        print("The rest: %s" % given.rest)
    raise SystemExit(bool(total["failed"]))


if __name__ == "__main__":
    main()
