# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import Gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.fields import FieldValues
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.validation import logging_findings

ALPHA_OFF = "Feature LoggingAlphaOptions is disabled"


def found(logging: Any, gates: dict[str, bool], emptied: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    findings = list(logging_findings(FieldValues({"logging": logging}, 36, emptied), Gates(gates, 36)))
    assert all(finding.fatal and finding.cause and finding.remedy for finding in findings)
    assert {finding.context for finding in findings} <= {"initialize logging: "}
    return [(finding.where, finding.text) for finding in findings]


@pytest.mark.parametrize(
    ("logging", "gates"),
    [
        (None, {}),
        ("text", {}),
        ({}, {}),
        ({"format": ""}, {}),
        (
            {"format": "text", "verbosity": 10, "flushFrequency": 5, "vmodule": [{"filePattern": "a", "verbosity": 1}]},
            {},
        ),
        ({"format": "json", "vmodule": []}, {}),
        ({"options": {"text": {"splitStream": False, "infoBufferSize": "0"}, "json": None}}, {}),
        ({"options": {"text": {"splitStream": True, "infoBufferSize": "1Ki"}}}, {"LoggingAlphaOptions": True}),
        ({"options": {"text": {"infoBufferSize": "x"}}}, {}),  # refused where it is decoded
        ({"vmodule": "a=1"}, {}),
    ],
)
def test_fine(logging: Any, gates: dict[str, bool]) -> None:
    assert found(logging, gates) == []


@pytest.mark.parametrize(
    ("logging", "gates", "where", "text"),
    [
        ({"format": "foo"}, {}, "format", 'Invalid value: "foo": Unsupported log format'),
        (
            {"format": "json"},
            {"LoggingBetaOptions": False},
            "format",
            "Forbidden: Log format json is disabled, see LoggingBetaOptions feature",
        ),
        ({"verbosity": 2**31}, {}, "verbosity", "Invalid value: 0x80000000: Must be <= 2147483647"),
        (
            {"format": "json", "vmodule": [{"filePattern": "a", "verbosity": 1}]},
            {},
            "vmodule",
            "Forbidden: Only supported for text log format",
        ),
        ({"vmodule": [{}]}, {}, "vmodule[0]", "Required value: File pattern must not be empty"),
        (
            {"vmodule": [{"filePattern": "a"}, {"filePattern": "a=b"}]},
            {},
            "vmodule[1]",
            'Invalid value: "a=b": File pattern must not contain equal sign or comma',
        ),
        (
            {"vmodule": [{"filePattern": "a", "verbosity": 2**32 - 1}]},
            {},
            "vmodule[0]",
            "Invalid value: 0xffffffff: Must be <= 2147483647",
        ),
        ({"options": {"text": {"splitStream": True}}}, {}, "options.text.splitStream", "Forbidden: " + ALPHA_OFF),
        (
            {"options": {"json": {"infoBufferSize": "1Ki"}}},
            {},
            "options.json.infoBufferSize",
            "Forbidden: " + ALPHA_OFF,
        ),
        ({"options": {"json": {"infoBufferSize": 1}}}, {}, "options.json.infoBufferSize", "Forbidden: " + ALPHA_OFF),
    ],
)
def test_refused(logging: Any, gates: dict[str, bool], where: str, text: str) -> None:
    assert found(logging, gates) == [("logging." + where, "logging.%s: %s" % (where, text))]


def test_all_in_order() -> None:
    logging = {
        "format": "foo",
        "verbosity": 2**31,
        "vmodule": [{"filePattern": ","}],
        "options": {"json": {"splitStream": True}, "text": {"infoBufferSize": "1", "splitStream": True}},
    }
    assert [where for where, _text in found(logging, {})] == [
        "logging.format",
        "logging.verbosity",
        "logging.vmodule",
        "logging.vmodule[0]",
        "logging.options.text.splitStream",
        "logging.options.text.infoBufferSize",
        "logging.options.json.splitStream",
    ]


def test_a_flag_may_empty_the_format() -> None:
    text = 'logging.format: Invalid value: "": Unsupported log format'
    assert found({"format": ""}, {}, frozenset({"logging.format"})) == [("logging.format", text)]
