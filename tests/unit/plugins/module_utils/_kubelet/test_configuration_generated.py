# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Generated changes change what they say and nothing else."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import ConfigurationError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import REMOVE, same
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.configuration_files import (
    FILES,
    HEAD,
    NODEADM,
    Changes,
    changed,
    reference,
)

TEXTS = st.sampled_from(
    ["static", "none", "true", "10s", "500m", "2", "0-3,8", "0", "", "a b", "it's", "a: b", "- a", "# a", "y", "é"]
)
SCALARS = TEXTS | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.sampled_from([0.5, 1e20, 1.5e-9]) | st.none()
SECOND_KEYS = st.sampled_from(["cpu", "memory", "a", "full-pcpus-only", "zz", "memory.available", "true", "a b"])
MEMBERS = st.dictionaries(SECOND_KEYS, SCALARS, max_size=3)
VALUES = SCALARS | MEMBERS | st.lists(SCALARS | MEMBERS | st.lists(SCALARS, max_size=2), max_size=3)
MAPPINGS = ["kubeReserved", "systemReserved", "evictionHard", "cpuManagerPolicyOptions", "featureGates", "new"]
TOP_KEYS = st.sampled_from(
    [
        *MAPPINGS,
        "address",
        "authentication",
        "clusterDNS",
        "cpuManagerPolicy",
        "maxPods",
        "shutdownGracePeriod",
        "zz",
        "logging",
    ]
)
PATHS = st.tuples(TOP_KEYS) | st.tuples(st.sampled_from(MAPPINGS), SECOND_KEYS)
CHANGES = st.dictionaries(PATHS, VALUES | st.just(REMOVE), max_size=5)


def expected_values(values: dict[str, Any], changes: Changes) -> dict[str, Any] | None:
    """Return what a person expects of changes of one or two levels; None where a path leads through a scalar or
    list."""
    values = copy.deepcopy(values)
    for (top, *second), value in sorted(changes.items(), key=lambda change: change[0]):
        if not second and value is REMOVE:
            values.pop(top, None)
        elif not second:
            values[top] = copy.deepcopy(value)
        elif value is REMOVE:
            if isinstance(values.get(top), dict) and second[0] in values[top]:
                del values[top][second[0]]
                if not values[top]:
                    del values[top]
        elif values.get(top) is None:
            values[top] = {second[0]: copy.deepcopy(value)}
        elif isinstance(values[top], dict):
            values[top][second[0]] = copy.deepcopy(value)
        else:
            return None
    return values


def lines_of_others(text: str, changes: Changes) -> list[str]:
    """Return the lines that belong to none of the changed top-level keys of a block-style file."""
    lines, changing = [], False
    changed_keys = {path[0] for path in changes}
    for line in text.splitlines():
        key = re.match(r"\ufeff?([A-Za-z0-9]+):", line)
        if key:
            changing = key.group(1) in changed_keys
        elif not line.startswith((" ", "- ")):
            changing = False
        if not changing:
            lines.append(line.replace("\ufeff", ""))
    return lines


@settings(max_examples=examples(60), deadline=None)
@given(CHANGES)
@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_changes_change_what_they_say_and_nothing_else(text: str, changes: Changes) -> None:
    start = KubeletConfiguration.parse(text)
    expected = expected_values(start.values, changes)
    if expected is None:
        with pytest.raises(ConfigurationError, match="is not a mapping"):
            start.with_changes(changes)
        return
    result = start.with_changes(changes)
    assert same(result.values, expected)
    assert same(reference(result.text), expected)
    # Again is no change, and what was so already is no change.
    assert result.with_changes(changes).text == result.text
    if same(expected, start.values):
        assert result.text == text
    # Line endings are the file's.
    assert ("\r\n" in text) == ("\r\n" in result.text)
    assert len(re.findall("\r\n|\n", result.text)) == result.text.count("\r\n" if "\r\n" in text else "\n")
    if re.search("(?m)^\ufeff?apiVersion:", text):
        assert lines_of_others(result.text, changes) == lines_of_others(text, changes)


REPEATED = """\
kubeReserved: &a
  cpu: 100m
  memory: 1Gi
systemReserved: *a
evictionHard:
  <<: *a
  a: 1
cpuManagerPolicyOptions: &b {cpu: &c 2, a: *c, <<: {zz: 1}}
featureGates: &d
  a: true
maxPods: *c
clusterDNS: [*c, {<<: *b}]
"""


@settings(max_examples=examples(150), deadline=None)
@given(CHANGES)
def test_changes_beside_anchors_change_what_they_say_or_are_refused(changes: Changes) -> None:
    start = KubeletConfiguration.parse(HEAD + REPEATED)
    expected = expected_values(start.values, changes)
    try:
        result = start.with_changes(changes)
    except ConfigurationError as error:
        assert expected is None or " cannot be changed " in error.problem  # noqa: PT017
        return
    assert same(result.values, expected)
    assert same(pyyaml.safe_load(result.text), expected)
    assert result.with_changes(changes).text == result.text


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(st.tuples(TOP_KEYS), VALUES, min_size=1, max_size=4))
def test_json_stays_what_the_same_writer_writes(changes: Changes) -> None:
    for layout in ({"indent": 4}, {"indent": "\t"}, {"separators": (",", ":")}, {}):
        text = json.dumps(json.loads(NODEADM), **layout)
        result = changed(text, changes)
        assert result == json.dumps(json.loads(result), ensure_ascii=False, **layout)
        others = [key for key in json.loads(text) if (key,) not in changes]
        assert [key for key in json.loads(result) if key in others] == others
