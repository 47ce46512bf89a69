# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the YAML reader is compared with: libyaml, of which the kubelet's reader is a port, and its own rare part."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml as pyyaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml import anchors, load, read
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_composer import read_rare
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import (
    YAMLError,
    as_json,
    resolve,
)


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


class Libyaml(pyyaml.CSafeLoader):
    """libyaml, with the kubelet's rules for plain scalars and names.

    libyaml says how a text is made up; which plain scalars are numbers or booleans, the kubelet decides by its own
    rules.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (as in PyYAML)

    def compose_node(self, parent: Any, index: Any) -> Any:
        # A name can be given anew, as in YAML and Go.
        if not self.check_event(pyyaml.AliasEvent):  # type: ignore[no-untyped-call,unused-ignore]
            event = self.peek_event()  # type: ignore[no-untyped-call,unused-ignore]
            self.anchors.pop(event.anchor, None)  # type: ignore[attr-defined,union-attr,unused-ignore]
        return super().compose_node(parent, index)  # type: ignore[misc,no-untyped-call,unused-ignore]

    def scalar(self, node: Any) -> Any:
        return node.value if node.style else as_json(resolve(node.value))


Libyaml.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile("<<$"), ["<"])
Libyaml.add_constructor("tag:yaml.org,2002:str", Libyaml.scalar)


def by_libyaml(text: str) -> Any:
    """Return the first document."""
    # Without what Python's codec does with it.
    return with_text_keys(next(pyyaml.load_all(text.lstrip("\ufeff"), Libyaml), None))


def with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        names = {True: "true", False: "false"}
        return {names[key] if isinstance(key, bool) else str(key): with_text_keys(item) for key, item in value.items()}
    return [with_text_keys(item) for item in value] if isinstance(value, list) else value


def has_name_twice(text: str) -> bool:
    """Return whether an anchor has the name of another: Python's binding of libyaml refuses that."""
    names = [text[anchor.start : anchor.name_end] for anchor in anchors(text)]
    return len(set(names)) < len(names)


# Where libyaml has become another since it was ported, or PyYAML decodes otherwise: '?' and ':' before a bracket's
# signs, some escapes, directives, tags, merge keys.
ANOTHER = re.compile(r"[?!%]|:[\]\[,{}]|\\['/\t]|<<")
# What is found wrong after libyaml's part: with keys, and values in themselves.
DECODER = re.compile("^unsupported|invalid map key|contains itself|^json|aliasing")


def assert_reads_as_libyaml(text: str) -> None:
    """Check that libyaml reads the same value or, where the kubelet refuses the text, no value."""
    try:
        value = load(text)
    except YAMLError as error:
        assert error.is_broken == bool(error.text), text  # noqa: PT017
        if error.is_broken and not ANOTHER.search(text) and not DECODER.search(error.text):
            with pytest.raises((pyyaml.YAMLError, ValueError, TypeError)):
                by_libyaml(text)
        return
    if not ANOTHER.search(text) and not has_name_twice(text):
        assert same(value, by_libyaml(text)), text


def assert_reads_as_whole_reader(text: str) -> None:
    """Check that what the small reader takes, the whole one reads alike, and at the same places."""
    try:
        node = read(text)
    except YAMLError:
        return
    assert read_rare(text)[0] == node, text
