# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/filter/cpuset.py."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.filter.cpuset import FilterModule
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import layout
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

ROOT = Path(__file__).resolve().parents[4]

FILTERS = FilterModule().filters()
PREFIX = "kubenode.cpu_manager."


def apply(name: str, *arguments: Any) -> Any:
    return FILTERS[name](*arguments)


ANSWERS = [
    ("cpuset", ["8,0-3"], "0-3,8"),
    ("cpuset", ["0-31:2/8"], "0-1,8-9,16-17,24-25"),
    ("cpuset", [""], ""),
    ("cpuset", [[3, 1, 2]], "1-3"),  # a list of CPUs
    ("cpuset", [[]], ""),
    ("cpuset", [5], "5"),  # one CPU
    ("cpuset", [0], "0"),
    ("cpuset_union", ["0-3", "2-5"], "0-5"),
    ("cpuset_union", ["0-3", 8, [10, 11]], "0-3,8,10-11"),  # of all kinds, and any number of them
    ("cpuset_union", ["3-3"], "3"),
    ("cpuset_intersection", ["0-3", "2-5"], "2-3"),
    ("cpuset_intersection", ["0-7", "2-5", "5-9"], "5"),
    ("cpuset_difference", ["0-7", "2-3"], "0-1,4-7"),
    ("cpuset_difference", ["0-7", "2-3", 0, [7]], "1,4-6"),  # one after the other
    ("cpuset_symmetric_difference", ["0-3", "2-5"], "0-1,4-5"),
    ("cpuset_list", ["0-2,8"], [0, 1, 2, 8]),
    ("cpuset_list", [""], []),
    ("cpuset_mask", ["0-39"], "ff,ffffffff"),
    ("cpuset_mask", [""], "0"),
    ("cpuset_from_mask", ["ff,ffffffff"], "0-39"),
    ("cpuset_from_mask", ["0"], ""),
]


@pytest.mark.parametrize(("name", "arguments", "answer"), ANSWERS)
def test_filter(name: str, arguments: list[Any], answer: Any) -> None:
    assert apply(name, *arguments) == answer


FAILURES = [
    ("cpuset", ["0-x"], "CPU list '0-x', position 3: expected the end of a range, found 'x'"),
    ("cpuset", [None], "'NoneType' object is not iterable"),
    ("cpuset", [True], "'bool' object is not iterable"),
    ("cpuset", [1.5], "'float' object is not iterable"),
    ("cpuset", [-1], "CPU -1 is out of range: CPU ids go from 0 to 65535"),
    ("cpuset", [["0", "1"]], "a CPU id is a whole number, not '0'"),
    ("cpuset_union", ["0", "x"], "CPU list 'x', position 1: expected a CPU id, found 'x'"),
    ("cpuset_difference", ["x", "0"], "CPU list 'x', position 1: expected a CPU id, found 'x'"),
    ("cpuset_mask", ["0xff"], "CPU list '0xff', position 2: expected ',', found 'x'"),
    ("cpuset_from_mask", ["0-3"], "CPU mask '0-3', position 2: '-' is not a hexadecimal digit"),
    ("cpuset_from_mask", [255], "a CPU list is a text such as '0-3,8', not 255"),
    ("cpu_layout", [{}], "'online'"),
    ("cpu_layout", [{"online": "", "cores": []}], "no online CPU found"),
    ("cpu_layout", [{"online": "0-1", "cores": ["0-1", "1"]}], "CPU 1 is in two cores"),
    ("cpu_layout", [{"online": "a", "cores": []}], "CPU list 'a', position 1: expected a CPU id, found 'a'"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), FAILURES)
def test_failure(name: str, arguments: list[Any], message: str) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        apply(name, *arguments)
    assert message in str(caught.value)


def test_layout() -> None:
    topology = parse_name("2s1n2c2t").topology()
    assert apply("cpu_layout", json.loads(json.dumps(topology.to_dict()))) == layout(topology)


@given(cpusets(), cpusets(), cpusets())
def test_algebra(first: CPUSet, second: CPUSet, third: CPUSet) -> None:
    sets = [str(first), str(second), str(third)]
    assert apply("cpuset_union", *sets) == str(first | second | third)
    assert apply("cpuset_intersection", *sets) == str(first & second & third)
    assert apply("cpuset_difference", *sets) == str(first - second - third)
    assert apply("cpuset_symmetric_difference", *sets) == str(first ^ second ^ third)
    # More than two at once is one after the other.
    for name in ("union", "intersection", "difference", "symmetric_difference"):
        assert apply("cpuset_" + name, *sets) == reduce(FILTERS["cpuset_" + name], sets)


@given(cpusets())
def test_forms(cpus: CPUSet) -> None:
    for form in (str(cpus), list(cpus)):
        assert apply("cpuset", form) == str(cpus)
        assert apply("cpuset_list", form) == list(cpus)
        assert apply("cpuset_from_mask", apply("cpuset_mask", form)) == str(cpus)


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text())))
def test_any_value_is_a_set_or_an_error_of_ansible(value: Any) -> None:
    with contextlib.suppress(AnsibleFilterError):
        assert isinstance(apply("cpuset", value), str)


def test_each_is_documented() -> None:
    """In a file of its name."""
    documented = {path.stem for path in (ROOT / "plugins/filter").glob("*.yml")}
    assert set(FILTERS) <= documented


def ansible(tmp_path: Path, expressions: dict[str, str]) -> dict[str, Any]:
    """Return what Ansible makes of Jinja expressions with the names of this collection."""
    # The one of this Python, where there is one.
    program = shutil.which("ansible", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if program is None:
        lacking(TOOL, "no ansible")
    link = tmp_path / "ansible_collections/kubenode/cpu_manager"
    link.parent.mkdir(parents=True)
    link.symlink_to(ROOT)
    variables = tmp_path / "variables.json"
    variables.write_text(json.dumps({"answer": {name: "{{ %s }}" % text for name, text in expressions.items()}}))
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(tmp_path),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.oneline",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "0",
    }
    command = [program, "localhost", "-i", "localhost,", "-m", "debug", "-e", "@" + str(variables), "-a", "var=answer"]
    answer = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout[answer.stdout.index("{") :])["answer"]
    return found


def test_in_ansible(tmp_path: Path) -> None:
    topology = parse_name("1s2c").topology()
    expressions = {
        "cpuset": "[3, 1, 2] | kubenode.cpu_manager.cpuset",
        "union": "'0-3' | kubenode.cpu_manager.cpuset_union('2-5', 8)",
        "difference": "'0-7' | kubenode.cpu_manager.cpuset_difference('2-3')",
        "list": "'0-2,8' | kubenode.cpu_manager.cpuset_list",
        "mask": "'0-39' | kubenode.cpu_manager.cpuset_mask",
        "layout": "%s | kubenode.cpu_manager.cpu_layout" % json.dumps(topology.to_dict()),
        "is cpuset": "['0-3', '0-', ''] | map('string') | select('kubenode.cpu_manager.cpuset') | list",
        "is subset": "'0-1' is kubenode.cpu_manager.cpuset_subset('0-3')",
        "is superset": "'0-1' is kubenode.cpu_manager.cpuset_superset('0-3')",
        "is equal": "'0,1' is kubenode.cpu_manager.cpuset_equal('0-1')",
        "is disjoint": "'0-1' is kubenode.cpu_manager.cpuset_disjoint('1-3')",
    }
    assert ansible(tmp_path, expressions) == {
        "cpuset": "1-3",
        "union": "0-5,8",
        "difference": "0-1,4-7",
        "list": [0, 1, 2, 8],
        "mask": "ff,ffffffff",
        "layout": layout(topology),
        "is cpuset": ["0-3", ""],
        "is subset": True,
        "is superset": False,
        "is equal": True,
        "is disjoint": False,
    }
