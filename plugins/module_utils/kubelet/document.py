# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text of a configuration, YAML or JSON, as a tree that says what each member is and where it stands."""

from __future__ import annotations

import json
import re
from typing import Any

from .yaml import FLOW, PLAIN, Member, Node, ReadError, YAMLError, read


def read_document(text: str) -> Node:
    """The root of the text. Raises ReadError, mostly a YAMLError, which has the line and the column."""
    return _JSONReader(text).document() if is_json(text) else read(text)


def is_json(text: str) -> bool:
    """What the kubelet reads as JSON, and as nothing else."""
    return text.lstrip(" \t\r\n").startswith("{")


class _JSONReader:
    """Reads JSON, and where each member stands."""

    _SPACE = re.compile(r"[ \t\r\n]*")

    def __init__(self, text: str) -> None:
        self.text = text
        self.decoder = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_no_constant)

    def document(self) -> Node:
        try:
            self.decoder.decode(self.text)
        except json.JSONDecodeError as error:
            raise YAMLError(
                error.lineno,
                error.colno,
                "no JSON, which the leading '{' announces: %s; is the file whole?" % error.msg,
                is_broken=True,
            ) from error
        except RecursionError as error:
            raise ReadError("too many collections in each other") from error
        except ReadError:
            raise
        except ValueError as error:  # an integer of thousands of digits
            raise ReadError(str(error)) from error
        return self._node(self._skip(0))

    def _node(self, start: int) -> Node:
        value, end = self.decoder.raw_decode(self.text, start)
        members: dict[str, Member] = {}
        if isinstance(value, dict):
            at = self._skip(start + 1)
            while self.text[at] != "}":
                key, key_end = self.decoder.raw_decode(self.text, at)
                colon = self._skip(key_end) + 1
                members[key] = Member(at, colon, self._node(self._skip(colon)))
                at = self._skip(members[key].node.end)
                if self.text[at] == ",":
                    at = self._skip(at + 1)
        return Node(value, start, end, FLOW if isinstance(value, (dict, list)) else PLAIN, members)

    def _skip(self, at: int) -> int:
        space = self._SPACE.match(self.text, at)
        return space.end() if space else at


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _value in pairs]
        raise ReadError("the key %r is there twice; remove one of the two" % next(k for k in keys if keys.count(k) > 1))
    return members


def _no_constant(name: str) -> None:
    raise ReadError("%s is no JSON" % name, is_broken=True)
