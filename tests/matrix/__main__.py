# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Try the collection with each ansible-core, each Python of the controller and each Python of the nodes:

python tests/matrix [quick | full] [--cores 2.20 2.21] [--pythons 3.12]

quick: the demo, the main job on saved nodes of each Python, and each action plugin where it fails. full:
tests/playbooks and ansible-test sanity, too.
Without --cores and --pythons, what was seen is written into README.md and into the page of supported versions.
Any other series can be tried, too, such as the pre-release of the next one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from typing import Iterator, NamedTuple

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import collection_path

collection_path.register()

# Only now, as the collection is importable.
from ansible_collections.kubenode.cpu_manager.tests.matrix import pages, trials  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.matrix.cores import (  # noqa: E402
    ROOT,
    Environment,
    core_of,
    lacking_pythons,
    supported,
)

RESULTS = ROOT / "build" / "matrix"
LINE = "%-12s %-10s %-32s %s"


class Seen(NamedTuple):
    """What one environment has shown: {Python of the nodes: whether it works}, and what went wrong."""

    environment: Environment
    nodes: dict[str, bool]
    problems: list[str]


def seen(environment: Environment, nodes: tuple[str, ...], is_full: bool) -> Seen:
    """Try one environment."""
    environment.make()
    directory = RESULTS / environment.name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    trial = trials.Trial(environment, directory)
    problems = trials.demo(trial) + trials.unhappy(trial)
    by_python = trials.on_nodes(trial, nodes, is_full)
    problems += dict.fromkeys(problem for found in by_python.values() for problem in found)
    if is_full:
        problems += trials.playbooks(trial)
    return Seen(environment, {version: not found for version, found in by_python.items()}, problems)


def run(options: argparse.Namespace) -> Iterator[Seen]:
    """Try all that is asked for, and print each as it ends."""
    for series in options.cores or supported():
        core = core_of(series)
        controllers = [version for version in core.controllers if version in (options.pythons or core.controllers)]
        for python in controllers:
            began = time.monotonic()
            result = seen(Environment(series, python), core.nodes, options.what == "full")
            if options.what == "full" and python == controllers[-1]:
                # It goes through all Pythons of the nodes by itself.
                directory = RESULTS / result.environment.name
                result.problems.extend(trials.sanity(trials.Trial(result.environment, directory)))
            works = " ".join(version for version, is_good in result.nodes.items() if is_good)
            said = "failed" if result.problems else "passed"
            print(LINE % (core.version, python, works, "%s, %d s" % (said, time.monotonic() - began)), flush=True)
            for problem in result.problems:
                print("  " + problem, flush=True)
            yield result


def main() -> None:
    """Run the tests of the matrix, and end with the status 1 where anything fails, or lacks a Python."""
    parser = argparse.ArgumentParser(
        prog="python tests/matrix", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", default="quick", choices=("quick", "full"))
    parser.add_argument("--cores", nargs="+", default=[], metavar="SERIES", help="such as 2.20; all that are supported")
    parser.add_argument("--pythons", nargs="+", default=[], metavar="VERSION", help="of the controller, such as 3.12")
    options = parser.parse_args()
    lacking = lacking_pythons()
    if lacking:
        parser.exit(1, "There is no Python %s here, which pyenv can install.\n" % ", ".join(lacking))
    print(LINE % ("ansible-core", "controller", "nodes", "result"))
    try:
        results = list(run(options))
    except subprocess.CalledProcessError as error:
        parser.exit(1, "%s\n" % error)
    if any(result.problems for result in results):
        parser.exit(1, "The table of supported versions is left as it is.\n")
    if not options.cores and not options.pythons:
        for path in pages.write(rows(results)):
            print("Written: %s" % path.relative_to(ROOT))


def rows(results: list[Seen]) -> dict[str, pages.Row]:
    """Return the table: of each series the Pythons of controllers, and the Pythons of nodes that work with each of
    these."""
    table = {}
    for series in dict.fromkeys(result.environment.core for result in results):
        of_core = [result for result in results if result.environment.core == series]
        works = [{version for version, is_good in result.nodes.items() if is_good} for result in of_core]
        table[series] = pages.Row(
            tuple(result.environment.python for result in of_core),
            tuple(version for version in of_core[0].nodes if version in set.intersection(*works)),
        )
    return table


if __name__ == "__main__":
    main()
