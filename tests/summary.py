# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Add up the results of all pytest runs into one closing line: python tests/summary.py DIRECTORY_OF_JUNIT_FILES"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def main() -> None:
    suites = [suite for file in Path(sys.argv[1]).glob("*.xml") for suite in ElementTree.parse(file).iter("testsuite")]
    tests, skipped, failures, errors = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "skipped", "failures", "errors")
    )
    failed = failures + errors
    print(f"\n{tests - skipped - failed} passed, {failed} failed, {skipped} skipped")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
