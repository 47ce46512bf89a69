# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report import view
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.table import table


def rows(*differences: tuple[Any, Any, Any], **parts: Any) -> dict[str, Any]:
    drift = [{"subject": subject, "found": found, "wanted": wanted} for subject, found, wanted in differences]
    return {"host": "node-1", "status": "drift", "drift": drift, **parts}


def lines(*nodes: dict[str, Any], skipped: tuple[str, ...] = ()) -> list[str]:
    return table([view(node) for node in nodes], skipped).splitlines()


def test_columns() -> None:
    first = rows(("policy", "none", "static"), ("options", {}, {"a": "true"}), ("cpus", "", "0-1"))
    assert lines(first, {"host": "b", "status": "clean"}) == [
        "NODE    STATUS  SUBJECT  FOUND  WANTED",
        "node-1  drift   policy   none   static",
        "                options  {}     {a: true}",
        "                cpus     -      0-1",
        "b       clean",
    ]


def test_a_message_of_several_lines_is_in_its_place() -> None:
    message = "the first line\nthe second line " + "x" * 120
    assert lines({"host": "a", "status": "failed", "message": message}, {"host": "b", "status": "clean"}) == [
        "NODE  STATUS  SUBJECT  FOUND  WANTED",
        "a     failed  the first line the second line",
        "              " + "x" * 100,
        "              " + "x" * 20,
        "b     clean",
    ]


def test_wide_values_are_wrapped() -> None:
    found = lines(rows(("policy", ",".join(str(number) for number in range(100, 120)), "0")))
    assert found == [
        "NODE    STATUS  SUBJECT  FOUND                                         WANTED",
        "node-1  drift   policy   100,101,102,103,104,105,106,107,108,109,110,  0",
        "                         111,112,113,114,115,116,117,118,119",
    ]
    # Characters that take two places, and none.
    assert lines(rows(("漢字", "o\u0308", "x")))[1] == "node-1  drift   漢字     o\u0308      x"


def test_no_escape_sequence_reaches_the_terminal() -> None:
    nodes = [
        rows(("\x1b[2J", "\x9b2J", "a\rb"), notes=["\x1b]0;x\x07"], refusals=[{"text": "\x1b[1m"}]),
        {"host": "\x1b[31m", "status": "\x1b[32mclean", "message": "\x1b[33m\n\x1b[34m"},
    ]
    found = lines(*nodes, skipped=("bastion",))
    assert not [one for text in found for one in text if not one.isprintable()]
    assert "\\x1b[31m" in "".join(found)


def test_remarks() -> None:
    node = rows(("isolated", "1", "2"), notes=["a note\nof two lines"])
    node["drift"][0]["remedy"] = "boot"
    node["refusals"] = [{"where": "config", "text": "managed", "remedy": "use the other"}]
    node["elsewhere"] = {"name": "kubespray", "why": "its next run writes the file anew", "snippet": "a: 1\n"}
    assert lines(node, skipped=("bastion", "etcd-1"))[2:] == [
        "node-1: isolated: boot",
        "node-1: cannot be changed: config: managed; use the other",
        "node-1: note: kubespray: its next run writes the file anew; the page has what to paste there",
        "node-1: note: a note of two lines",
        "No kubelet, skipped: bastion, etcd-1",
    ]
    node["elsewhere"]["snippet"] = ""
    assert "node-1: note: kubespray: its next run writes the file anew" in lines(node)


def test_no_node() -> None:
    assert lines() == ["NODE  STATUS  SUBJECT  FOUND  WANTED"]
