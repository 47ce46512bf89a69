# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node is looked at for where that is wanted: isolation, throttling, housekeeping, caches, impact and a trial
start. Pure.

LOOKS in checks.py has their names. An answer is that of the module isolation_info, throttling_info,
housekeeping_info, cache_info or kubelet_trial, or what impact/look.py makes of that of admission_info; a report has
what shown_looks() makes of it.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Sequence

from ...module_utils._base.errors import InputError
from .answers import WRONG, answered, items, line, mapping, plain
from .checks import CACHE, HOUSEKEEPING, IMPACT, ISOLATION, LOOKS, THROTTLING, TRIAL

# Seconds. Without a time, a counter that the kernel has kept since the boot is read; who runs where has none.
_LEAST = {ISOLATION: 1, THROTTLING: 0, HOUSEKEEPING: 0, CACHE: 0, IMPACT: 0, TRIAL: 0}
MOST_SECONDS = 3600
# What of an answer goes into no file: it is much, and the report has the verdicts that follow from it.
_LEFT_OUT = {ISOLATION: ("cpus",)}
# What of the wanted settings says which CPUs are reserved.
_RESERVED = ("reserved_system_cpus", "reservation")
# Rows of one table of a node, and disturbers in one of them.
MOST_ROWS = 20
_MOST_DISTURBERS = 3
_VERDICTS = ("disturbed", "alone", "idle")
# What becomes of pods that do not stay as they are, and what the node has afterwards, in CPUs.
_FATES = ("refused", "loses", "gains")
_AFTERWARDS = ("exclusive", "allocatable", "stranded", "shared")
# Larger than any number of an answer.
_MOST = 1e15
# Of the looks whose module has another name.
_MODULES = {IMPACT: "admission_info", TRIAL: "kubelet_trial"}


def module_of(look: str) -> str:
    """Return the name of the module that looks."""
    return "kubenode.cpu_manager." + source_of(look)


def source_of(look: str) -> str:
    """Return the module that looks, as the source of a finding."""
    return _MODULES.get(look, look + "_info")


def check_seconds(looks: Iterable[str], seconds: int, option: str) -> None:
    """Raise InputError unless each of these looks can take so many seconds. option: its name in the message."""
    for look in looks:
        if not _LEAST[look] <= seconds <= MOST_SECONDS:
            remedy = "give %d to %d" % (_LEAST[look], MOST_SECONDS)
            raise InputError("%d seconds are no time for %s" % (seconds, look), option, remedy)


def arguments_of(
    look: str,
    wanted: Mapping[str, object],
    seconds: int,
    hide_names: bool,
    program: str | None = None,
    devices: Sequence[object] = (),
    tells: bool = False,
) -> dict[str, object]:
    """Return what the module of a look is given beside the places of the node's files.

    wanted: the wanted settings. program: the option of kubelet_trial. devices: that of admission_info. tells: whether
    the node tells of its pods.
    """
    if look == TRIAL:
        # The node as it is: a rollout tries what is wanted.
        return {} if program is None else {"program": program}
    if look == IMPACT:
        return {"devices": list(devices), "pods": tells}
    if look == HOUSEKEEPING:
        # It takes no time, and has no names of pods.
        return {name: wanted[name] for name in _RESERVED if name in wanted}
    return {"seconds": seconds, "hide_names": hide_names}


def kept(look: str, answer: object) -> dict[str, Any]:
    """Return what a result file has of the answer to a look: plain data, with `failed` and `msg` where there is
    none."""
    if not isinstance(answer, Mapping):
        return {"failed": True, "msg": "the answer of the node is not a mapping"}
    if answer.get("unreachable"):
        return {"failed": True, "msg": answer.get("msg", "the node could not be reached")}
    try:
        out = _LEFT_OUT.get(look, ())
        found: dict[str, Any] = plain({name: value for name, value in answered(answer).items() if name not in out}, str)
        return found
    except WRONG as error:
        return {"failed": True, "msg": "the answer of the node cannot be written: %s" % error}


def shown_looks(looks: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Return {look: {"is_measured", "seconds", "containers", "left_out"}} as a report has it; it raises nothing.

    seconds: how long was looked; None for what was counted since the boot. containers: the worst first; how many more
    there are is `left_out`. is_measured: whether the checks of the look say anything about this node. Housekeeping has
    {"is_measured", "reserved", "layers"}: how many settings there are of each layer, and how many are to change. The
    caches have {"is_measured", "exclusive", "groups", "left_out"}: what each group has, and what was counted of it. The
    impact has {"is_measured", "changes", "afterwards", "workloads", "left_out"}: what becomes of the pods of each.
    trial has {"is_measured", "seconds", "trials"}: what the kubelet said, one row.
    """
    makers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]
    makers = {
        ISOLATION: _isolation,
        THROTTLING: _throttling,
        HOUSEKEEPING: _housekeeping,
        CACHE: _cache,
        IMPACT: _impact,
        TRIAL: _trial,
    }
    return {look: makers[look](mapping(looks[look])) for look in LOOKS if look in looks}


def _isolation(answer: Mapping[str, object]) -> dict[str, object]:
    rows: list[dict[str, Any]] = [
        {
            "container": _name(row),
            "cpus": line(row.get("cpus", "")),
            "verdict": row["verdict"] if row.get("verdict") in _VERDICTS else "",
            "own_percent": _number(row.get("own_percent")),
            "foreign_percent": _number(row.get("foreign_percent")),
            "by": [_disturber(part) for part in map(mapping, items(row.get("by"))[:_MOST_DISTURBERS])],
        }
        for row in map(mapping, items(answer.get("containers")))
    ]
    rows.sort(key=lambda row: (row["verdict"] != _VERDICTS[0], -(row["foreign_percent"] or 0), row["container"]))
    seconds = _number(answer.get("seconds"))
    return _shown(answer, bool(seconds), seconds, rows)


def _disturber(part: Mapping[str, object]) -> str:
    percent = _number(part.get("percent"))
    words = [line(part.get(name, "")) for name in ("kind", "name")]
    return " ".join(filter(None, [*words, "" if percent is None else "%g %%" % percent]))


def _throttling(answer: Mapping[str, object]) -> dict[str, object]:
    cgroups = mapping(answer.get("cgroups"))
    rows = []
    for row in map(mapping, items(answer.get("containers"))):
        limit = mapping(row.get("limit"))
        path = limit.get("cgroup")
        level = mapping(cgroups.get(path)) if isinstance(path, str) else {}
        shown: dict[str, Any] = {
            "container": _name(row),
            "exclusive": line(row.get("exclusive", "")),
            "limit_cpus": _number(limit.get("cpus")),
            "quota_us": _number(level.get("quota_us")),
            "period_us": _number(level.get("period_us")),
            "limit_of": line(level.get("kind", "")),
            "throttled_percent": _number(row.get("throttled_percent")),
        }
        if shown["limit_cpus"] is not None or shown["throttled_percent"] is not None:
            rows.append(shown)
    rows.sort(key=lambda row: (-(row["throttled_percent"] or 0), not row["exclusive"], row["container"]))
    return _shown(answer, bool(answer.get("hierarchy")), _number(answer.get("seconds")), rows)


def _housekeeping(answer: Mapping[str, object]) -> dict[str, object]:
    rows = [*map(mapping, items(answer.get("interrupts"))), *map(mapping, items(answer.get("layers")))]
    by_layer: dict[str, list[Mapping[str, object]]] = {}
    for row in rows:
        by_layer.setdefault(line(row.get("layer", "")), []).append(row)
    reserved = line(answer.get("reserved", ""))
    return {
        "is_measured": bool(reserved) and not answer.get("failed"),
        "reserved": reserved,
        "layers": [
            {
                "layer": layer,
                "settings": len(of_layer),
                "to_change": sum(row.get("wanted") is not None for row in of_layer),
                "fixed": sum(row.get("problem") in ("fixed", "refused") for row in of_layer),
                "examples": [_setting(row) for row in of_layer if row.get("wanted") is not None][:_MOST_DISTURBERS],
            }
            for layer, of_layer in list(by_layer.items())[:MOST_ROWS]
        ],
    }


def _cache(answer: Mapping[str, object]) -> dict[str, object]:
    """Return of each group: its CPUs, its ways as "L3 0: f, 1: f", and the bytes that it has in all caches."""
    rows = []
    for group in map(mapping, items(answer.get("groups"))):
        ways = [
            "%s %s" % (line(name), ", ".join("%s: %s" % (line(key), line(value)) for key, value in ids.items()))
            for name, ids in ((name, mapping(ids)) for name, ids in mapping(group.get("schemata")).items())
            if isinstance(name, str) and name[:1] == "L"
        ]
        counted = [_number(mapping(at).get("occupancy")) for at in mapping(group.get("counted")).values()]
        numbers = [number for number in counted if number is not None]
        rows.append(
            {
                "group": line(group.get("name", "")),
                "owner": line(group.get("owner", "")),
                "mode": line(group.get("mode", "")),
                "cpus": line(group.get("cpus", "")),
                "ways": "; ".join(ways),
                "processes": int(_number(group.get("processes")) or 0),
                "occupancy": int(sum(numbers)) if numbers else None,
            }
        )
    rows.sort(key=lambda row: (row["owner"] != "ours", row["group"]))
    return {
        "is_measured": bool(answer.get("mounted") or answer.get("partition")) and not answer.get("failed"),
        "exclusive": line(answer.get("exclusive") or ""),
        "groups": rows[:MOST_ROWS],
        "left_out": len(rows[MOST_ROWS:]),
    }


def _trial(answer: Mapping[str, object]) -> dict[str, object]:
    starts, formats = answer.get("starts"), mapping(answer.get("checkpoint_format"))
    is_measured = isinstance(starts, bool) and not answer.get("failed")
    row = {
        "kubelet": line(answer.get("program") or "its own"),
        "version": line(answer.get("version") or ""),
        "starts": starts is True,
        "message": line(answer.get("message") or ""),
        # As "2 -> 4"; a checkpoint that is not there, or that nobody can read, has none.
        "checkpoint": " -> ".join(line(formats.get(when) or "none") for when in ("before", "after")),
        "differs": answer.get("prediction_differs") is True,
    }
    return {
        "is_measured": is_measured,
        "seconds": _number(answer.get("seconds")),
        "trials": [row] if is_measured else [],
    }


def _impact(answer: Mapping[str, object]) -> dict[str, object]:
    """Return of each workload that does not stay as it is: what becomes of it, and why."""
    rows = [
        {
            "workload": line(row.get("workload", "")),
            "fate": row["fate"] if row.get("fate") in _FATES else "",
            "pods": int(_number(row.get("pods")) or 0),
            "refused": int(_number(row.get("refused")) or 0),
            **{name: line(row.get(name, "")) for name in ("reason", "message", "cure", "inexact")},
        }
        for row in map(mapping, items(answer.get("workloads")))
    ]
    rows = [row for row in rows if row["fate"]]
    node = mapping(answer.get("node"))
    return {
        "is_measured": bool(node) and not answer.get("failed"),
        "changes": node.get("changes") is True,
        "afterwards": {name: int(_number(node.get(name)) or 0) for name in _AFTERWARDS},
        "workloads": rows[:MOST_ROWS],
        "left_out": len(rows[MOST_ROWS:]),
    }


def _setting(row: Mapping[str, object]) -> str:
    found = row.get("found")
    return "%s: %s" % (line(row.get("name", "")), "no limit" if found is None else line(found))


def _shown(
    answer: Mapping[str, object], is_measured: bool, seconds: float | None, rows: Sequence[Mapping[str, object]]
) -> dict[str, Any]:
    return {
        "is_measured": is_measured and not answer.get("failed"),
        "seconds": seconds,
        "containers": list(rows[:MOST_ROWS]),
        "left_out": len(rows[MOST_ROWS:]),
    }


def _name(row: Mapping[str, object]) -> str:
    """Return the name of a container, as findings have it."""
    parts = (line(row.get("pod") or row.get("pod_uid") or ""), line(row.get("container") or ""))
    return "/".join(filter(None, parts))


def _number(value: Any) -> float | None:
    """Return a number that makes sense; None for anything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= _MOST else None
