# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubelet configurations with their drop-ins: what is read of them, or how they are refused."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import StartError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.loading import (
    FileState,
    Loaded,
    load_configuration,
)

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
PATH, DIRECTORY = "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/config.conf.d"
NO_HEAD = "couldn't get version/kind; json parse error: "
STRUCT = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def takes_all(_gates: Mapping[str, bool]) -> None:
    return None


def load_files(
    text: str | FileState | None, *drop_ins: str | bytes, minor: int = 36, flag_gates: Mapping[str, bool] | None = None
) -> Loaded:
    """Load a file with a head, and drop-ins with a head, if there are any."""
    file = (HEAD + text).encode() if isinstance(text, str) else text
    files = [
        ("%d.conf" % number, drop_in if isinstance(drop_in, bytes) else (HEAD + drop_in).encode())
        for number, drop_in in enumerate(drop_ins, 1)
    ]
    return load_configuration(file, files or None, minor, takes_all, PATH, DIRECTORY, flag_gates)


def given_values(loaded: Loaded) -> dict[str, Any]:
    """Return what a file gives, without the head."""
    ignored = {"apiVersion", "kind", *loaded.defaulted}
    return {name: value for name, value in loaded.values.items() if name not in ignored}


def refusal(file: str | FileState | None, *drop_ins: str | bytes, minor: int = 36) -> tuple[str, str]:
    with pytest.raises(StartError) as error:
        load_files(file, *drop_ins, minor=minor)
    assert error.value.cause
    assert error.value.remedy
    return error.value.context, error.value.text


RESTARTS = {"maxContainerRestartPeriod": 300 * 10**9}
