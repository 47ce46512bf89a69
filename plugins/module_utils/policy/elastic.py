# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which containers may have more exclusive CPUs than they request: the annotation of their pod. Pure."""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple

from ..cpuset import MAX_CPUS
from ..errors import InputError
from ..quantity import counted
from ..workload.pods import Pod

ANNOTATION = "cpu-manager.kubenode/elastic"

_RANGE = re.compile("([1-9][0-9]{0,4})-([1-9][0-9]{0,4})", re.ASCII)


class Range(NamedTuple):
    """From how many to how many exclusive CPUs a container has; `least` is what it requests."""

    least: int
    most: int


class Elastic(NamedTuple):
    """What an annotation says.

    most: {container: the most CPUs that it may have}, of the elastic ones alone. problem: what is wrong with the
    annotation, of the kind input; no container of the pod is elastic then.
    """

    most: Mapping[str, int]
    problem: InputError | None = None


def parse_range(text: object) -> Range:
    """Read "2-8". Raises InputError: no blanks, no signs, no leading zeros, and the second number is the larger one."""
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InputError(
            "%s is no range of CPUs" % repr(text)[:80], "annotation %s" % ANNOTATION, 'write it as "2-8", as a text'
        )
    least, most = map(int, found.groups())
    if not least < most <= MAX_CPUS:
        raise InputError(
            "%s is no range to grow in" % text,
            "annotation %s" % ANNOTATION,
            "give a second number from %d to %d" % (least + 1, MAX_CPUS),
        )
    return Range(least, most)


def elastic_containers(pod: Pod, annotations: Mapping[str, object], minor: int) -> Elastic:
    """The elastic containers of a pod: those with exclusive CPUs that request the lower end of its range.

    annotations: metadata.annotations of the pod. minor: the kubelet's minor version, which decides on exclusive CPUs.
    """
    if ANNOTATION not in annotations:
        return Elastic({})
    try:
        least, most = parse_range(annotations[ANNOTATION])
        names = [name for name, count in pod.exclusive_counts(minor).items() if count == least]
        if not names:
            raise InputError(
                "no container of the pod requests %s" % counted(least, "exclusive CPU"),
                "annotation %s" % ANNOTATION,
                "begin the range with the CPUs that a container of a Guaranteed pod requests",
            )
    except InputError as error:
        return Elastic({}, error.within("pod %s" % pod.name))
    return Elastic(dict.fromkeys(names, most))
