# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Python of a node that somebody has taken over: modules do their work, and their answers say more than that."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Collection, Mapping

# What would act on this machine, such as services: {the file's name without AnsiballZ_: the answer}
_FEIGNED = {
    "service": {"changed": True, "status": {}},
    "systemd": {"changed": True, "status": {}},
    "setup": {"changed": False, "ansible_facts": {"ansible_service_mgr": "systemd"}},
    "wait_for_kubelet": {"changed": False, "node": "node", "notes": []},
}
_PROGRAM = """\
#!%(python)s
import json, os, re, subprocess, sys

with open(%(place)r + ".asked", "a") as log:
    name = (re.findall("AnsiballZ_(\\\\w+)", " ".join(sys.argv[1:])) or [""])[0]
    log.write(name + "\\n")
if not name:
    os.execv(%(python)r, [%(python)r, *sys.argv[1:]])
said = json.load(open(%(place)r + ".json"))
answer = said["feigned"].get(name)
if answer is None:
    done = subprocess.run([%(python)r, *sys.argv[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    answer = json.loads(done.stdout)
if said["of"] is None or name in said["of"]:
    for key, value in said["more"].items():
        answer[key] = {**answer.get(key, {}), **value} if isinstance(value, dict) else value
sys.stdout.write(said["before"] + json.dumps(answer) + said["after"])
"""


def hostile_python(
    place: Path,
    more: Mapping[str, Any],
    modules: Collection[str] | None = None,
    before: str = "",
    after: str = "",
) -> dict[str, Any]:
    """Return the variables of a host on which the answers of these modules, of all by default, have these members, too.

    before, after: what is printed around them. PLACE.asked gets the name of each module that runs.
    """
    place.parent.mkdir(exist_ok=True)
    said = {
        "more": more,
        "of": None if modules is None else sorted(modules),
        "before": before,
        "after": after,
        "feigned": _FEIGNED,
    }
    place.with_name(place.name + ".json").write_text(json.dumps(said), encoding="utf-8")
    place.write_text(_PROGRAM % {"python": sys.executable, "place": str(place)}, encoding="utf-8")
    place.chmod(0o755)
    return {"ansible_python_interpreter": str(place)}


def asked_of(place: Path) -> list[str]:
    """Return the modules that were run with it."""
    log = place.with_name(place.name + ".asked")
    return log.read_text(encoding="utf-8").split() if log.exists() else []
