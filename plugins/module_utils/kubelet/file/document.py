# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text of a configuration, YAML or JSON, as a tree that says what each member is and where it stands.

Source: k8s.io/apimachinery/pkg/util/yaml (what is JSON), pkg/runtime/serializer/json.
"""

from __future__ import annotations

from .nodes import Node
from .yaml import read


def read_document(content: str | bytes) -> Node:
    """The root of a text, or of a file as the kubelet reads it: in UTF-8 or UTF-16.

    Raises ReadError, mostly a YAMLError, which has the line and the column.
    """
    start = content[:2]
    # JSON is not looked for in UTF-16.
    if isinstance(content, bytes) and start not in (b"\xff\xfe", b"\xfe\xff"):
        content = content.decode("utf-8", "surrogateescape")
    if isinstance(content, str) and is_json(content):
        from .json_reader import read_json

        return read_json(content)
    return read(content)


def is_json(text: str) -> bool:
    """What the kubelet reads as JSON, and as nothing else."""
    # Go has no space at U+001C to U+001F.
    return text[:1] in "{ \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" and text.lstrip().startswith("{")
