# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What belongs to which version of Kubernetes: the one place of the tests that knows it.

The programs are those that are built here, or those that KUBERNETES=DIR gives, see tests/cluster/binaries.py.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterable, NamedTuple

# What is built here.
BUILT = "1.20.2"
BUILT_MINOR = 20
# What names the tests of that version alone: they are skipped with others.
OF_BUILT = "of_1_20"


class Belongs(NamedTuple):
    """Something that the versions 1.`first` to 1.`last` have."""

    what: Any
    first: int = 0
    last: int = 999


# {program: flags without which it does not do what the tests want}; %s is a directory of the test's own.
FLAGS = {
    "kube-controller-manager": (
        Belongs("--port=0", last=23),
        # Of later versions some have it, none needs it.
        Belongs("--flex-volume-plugin-dir=%s/volume-plugins", last=23),
    ),
    "kube-scheduler": (Belongs("--port=0", last=23),),
    "kubelet": (Belongs("--container-runtime=remote", last=26),),
}
# {kind: the version of its API}
APIS = {"PodDisruptionBudget": (Belongs("policy/v1beta1", last=20), Belongs("policy/v1", first=21))}
# (field, value) of the kubelet's configuration: from 1.35 on it refuses cgroup v1 otherwise.
FIELDS = (Belongs(("failCgroupV1", False), first=31),)
# Of the API of pod resources, v1, what tests ask for.
POD_RESOURCES = (Belongs("List", first=20), Belongs("GetAllocatableResources", first=23))
# Options of the static policy that need no gate of alpha.
OPTIONS = (Belongs(("full-pcpus-only", "true"), first=23),)
# {what a metric of the kubelet counts: its name}
METRICS = {
    "containers with CPUs of their own": (Belongs("kubelet_cpu_manager_pinning_requests_total", first=26),),
    "their CPUs": (Belongs("kubelet_cpu_manager_exclusive_cpu_allocation_count", first=32),),
    "thousandths of CPUs in the shared pool": (Belongs("kubelet_cpu_manager_shared_pool_size_millicores", first=32),),
}
# Fields with which it decides on pods as a whole.
WHOLE_PODS = (
    Belongs(("featureGates", {"PodLevelResourceManagers": True}), first=36),
    Belongs(("topologyManagerPolicy", "best-effort"), first=36),
    Belongs(("topologyManagerScope", "pod"), first=36),
)
# Fields with which the kubelet reserves memory on the only NUMA node, without a gate of alpha.
RESERVED_MEMORY = (
    Belongs(("memoryManagerPolicy", "Static"), first=22),
    Belongs(("systemReserved", {"memory": "64Mi"}), first=22),
    Belongs(("reservedMemory", [{"numaNode": 0, "limits": {"memory": "64Mi"}}]), first=22),
)
# {case of test_real_kubelet: how the kubelet says it, where the versions that we predict use other words}
WORDS = {
    "no-list": (
        Belongs('unable to parse reservedSystemCPUs (--reserved-cpus), error: strconv.Atoi: parsing "0;4"', last=28),
    ),
    "cgroup-too": (
        Belongs(
            "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup)",
            last=28,
        ),
    ),
    "no-scope": (Belongs("topologyManagerScope non-allowable value: node", last=28),),
}
# The starts of a kubelet 1.36 that were recorded, and are predicted wrongly of another, which is right.
MISTAKEN = (
    *("ckpt/raw-26", "doc/logging-bad", "flag/032", "flag/102", "flag/115", "other/0", "other/10", "other/23"),
    *("other/4", "rest/14", "w2-flag/28", "w2-flag/29", "w2-gate/26-tm"),
)
MISTAKEN_OF = (Belongs(MISTAKEN, last=BUILT_MINOR),)


def belonging(rows: Iterable[Belongs], minor: int) -> list[Any]:
    """Return what of these a version 1.`minor` has, in their order."""
    return [row.what for row in rows if row.first <= minor <= row.last]


def flags(program: str, version: str, directory: Path = Path()) -> list[str]:
    """Return the flags that only some versions of a program have, for this version of it."""
    return [flag.replace("%s", str(directory)) for flag in belonging(FLAGS.get(program, ()), minor_of(version))]


def api(kind: str, version: str) -> str:
    """Return the version of the API in which this version has objects of a kind."""
    (found,) = belonging(APIS[kind], minor_of(version))
    return str(found)


def words(case: str, version: str) -> str:
    """Return how this version says it; empty where it says it as we do."""
    return "".join(belonging(WORDS.get(case, ()), minor_of(version)))


def mistaken(version: str) -> set[str]:
    """Return the recorded starts that are predicted wrongly of this version."""
    return {name for names in belonging(MISTAKEN_OF, minor_of(version)) for name in names}


def fields(version: str) -> dict[str, Any]:
    """Return the fields of a kubelet's configuration that only some versions have, for this version."""
    return dict(belonging(FIELDS, minor_of(version)))


def given() -> Path | None:
    """Return the directory with programs that KUBERNETES names; None without it."""
    named = os.environ.get("KUBERNETES", "")
    return Path(named).expanduser().resolve() if named else None


def version() -> str:
    """Return the version of the kubelet that tests run, such as 1.20.2; that of the API server where none is given."""
    directory = given()
    for name in ("kubelet", "kube-apiserver") if directory else ():
        if (directory / name).exists():  # type: ignore[operator]
            return version_of(directory / name)  # type: ignore[operator]
    return BUILT


@lru_cache(maxsize=None)
def version_of(program: Path) -> str:
    """Return what a program of Kubernetes says that it is, such as 1.20.2. Raises ValueError where it says something
    else."""
    done = subprocess.run([str(program), "--version"], stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    found = re.search(r"^Kubernetes v([0-9]+\.[0-9]+\.[0-9]+\S*)$", done.stdout, re.MULTILINE)
    if not found:
        raise ValueError("%s --version does not say which version of Kubernetes it is: %r" % (program, done.stdout))
    return found[1]


def minor_of(version: str) -> int:
    """Return 20 of 1.20.2."""
    return int(version.split(".")[1])


if __name__ == "__main__":
    print(version())
