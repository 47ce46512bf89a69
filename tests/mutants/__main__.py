# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change the code in small ways, one at a time, and count how many of the changes the unit tests notice:

python tests/mutants [--sample 40] [--seed 1] [AREA ...]

Ends with the status 1 where the tests of an area notice fewer than 90 % of a sample. Changes that no test can notice
are listed, each with the reason, in equivalent.yml.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from mutants.areas import AREAS, EQUIVALENT, candidates, equivalent  # noqa: E402
from mutants.mutations import Mutant  # noqa: E402
from mutants.trial import ROOT, Trial, copy_checkout  # noqa: E402

FLOOR = 0.9
MEMORY = ROOT / "build" / "mutants"


def choose(found: list[Mutant], sources: dict[str, bytes], sample: int, seed: str) -> list[Mutant]:
    """Return so many of them (0: all) that are valid, in the order of the files."""
    order = list(found)
    random.Random(seed).shuffle(order)
    chosen: list[Mutant] = []
    for mutant in order:
        if sample and len(chosen) == sample:
            break
        if mutant.is_valid(sources[mutant.file]):
            chosen.append(mutant)
    return sorted(chosen)


def measure(checkout: Path, name: str, chosen: list[Mutant], sources: dict[str, bytes]) -> bool:
    """Try these changes, and print those that nothing notices. True when enough are noticed."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as directory:
        # Some tests look at their files as another user.
        Path(directory).chmod(0o711)
        trial = Trial(checkout, AREAS[name].test_paths(checkout), Path(directory))
        killed = 0
        for mutant in chosen:
            if trial.notices(mutant):
                killed += 1
            else:
                before, after = mutant.lines(sources[mutant.file])
                print("%s:%d\n  - %s\n  + %s" % (mutant.file, mutant.line, before, after), flush=True)
    kept = killed >= FLOOR * len(chosen)
    share = 100 * killed / max(len(chosen), 1)
    print(
        "%s: %d of %d changes noticed, %.0f %%%s"
        % (name, killed, len(chosen), share, "" if kept else ", below %.0f %%" % (100 * FLOOR)),
        flush=True,
    )
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python tests/mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("areas", metavar="AREA", nargs="*", help="of %s; all without one" % ", ".join(AREAS))
    parser.add_argument("--sample", type=int, default=40, help="how many changes of each area, 0 for all")
    parser.add_argument("--seed", default="1", help="for another sample")
    options = parser.parse_args()
    unknown = set(options.areas) - set(AREAS)
    if unknown:
        parser.error("no such area: %s" % ", ".join(sorted(unknown)))
    excluded = equivalent()
    kept = True
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as directory:
        checkout = copy_checkout(Path(directory))
        found = {name: candidates(checkout, area, excluded) for name, area in AREAS.items()}
        if excluded:
            sys.exit("%s: there is no such change any more:\n%s" % (EQUIVALENT, "\n".join(map(str, sorted(excluded)))))
        for name in options.areas or AREAS:
            chosen = choose(*found[name], options.sample, "%s %s" % (options.seed, name))
            kept = measure(checkout, name, chosen, found[name][1]) and kept
    return 0 if kept else 1


def isolate() -> None:
    """Start again where possible, as changed code may write anywhere and leave processes behind: with nothing but a
    directory in memory to write to, and with processes that end with this one."""
    if os.environ.get("TMPDIR") != str(MEMORY):
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if os.geteuid() == 0 and subprocess.run([*command, "true"], check=False, capture_output=True).returncode == 0:
            MEMORY.mkdir(parents=True, exist_ok=True)
            os.execvpe(command[0], [*command, sys.executable, *sys.argv], {**os.environ, "TMPDIR": str(MEMORY)})
        return
    subprocess.run(["mount", "-t", "tmpfs", "none", MEMORY], check=True)
    # Where Ansible makes its temporary files.
    os.environ["ANSIBLE_HOME"] = str(MEMORY / "ansible")
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        mounted = [line.split()[4] for line in file]
    for place in mounted:
        if place != str(MEMORY) and not place.startswith(("/proc", "/dev")):
            subprocess.run(["mount", "-o", "remount,bind,ro", place], check=False, capture_output=True)


if __name__ == "__main__":
    isolate()
    sys.exit(main())
