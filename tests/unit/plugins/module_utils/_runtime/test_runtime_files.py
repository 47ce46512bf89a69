# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_runtime/runtime_files.py: which files are read, what they say, how they change."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._runtime.runtime_files import (
    OWN,
    OWN_TEMPLATE,
    Runtime,
    RuntimeSwitch,
    find_runtime,
    plan,
    plan_absent,
    read_state,
)

from .runtime_files import (
    CONTAINERD,
    CRI,
    CRI_3,
    CRIO,
    CRIO_DIRECTORY,
    CRIO_DROP_IN,
    CRIO_MAIN,
    DIRECTORY,
    DROP_IN,
    IMPORTS,
    K3S,
    MAIN,
    NRI,
    OF_K3S,
    OFF,
    ON,
    node,
)


def test_files_that_import_each_other(tmp_path: Path) -> None:
    tree = node(
        tmp_path, {MAIN: 'version = 3\nimports = ["a.toml"]\n', "/etc/containerd/a.toml": 'imports = ["config.toml"]\n'}
    )
    assert read_state(tree, find_runtime(tree, None)).nri == ON


def test_too_many_files(tmp_path: Path) -> None:
    files = {"%s/%d.toml" % (DIRECTORY, number): "" for number in range(201)}
    tree = node(tmp_path, {MAIN: IMPORTS, **files})
    with pytest.raises(NodeError) as caught:
        read_state(tree, find_runtime(tree, None))
    assert "more than 200 files" in str(caught.value)


def test_places_of_the_socket_and_the_files(tmp_path: Path) -> None:
    text = "version = 3\n" + NRI + 'socket_path = "/x.sock"\n' + CRI_3 + 'cdi_spec_dirs = ["/c"]\n'
    state = read_state(node(tmp_path, {MAIN: text}), Runtime("containerd", MAIN, "containerd"))
    assert state.to_dict() == {
        "nri": True,
        "nri_source": "",
        "cdi": True,
        "cdi_source": "",
        "nri_socket": "/x.sock",
        "cdi_spec_dirs": ["/c"],
    }


BEGIN, END = "# BEGIN kubenode.cpu_manager\n", "# END kubenode.cpu_manager\n"


class Case(NamedTuple):
    """The files of a node, what they say of NRI and CDI, and what turns them on."""

    files: Mapping[str, str]
    nri: RuntimeSwitch
    cdi: RuntimeSwitch
    written: Mapping[str, str]
    version: str | None = "1.7.22"
    endpoint: str = CONTAINERD


CASES = {
    "no file of 1.7": Case(
        {},
        OFF,
        OFF,
        {
            MAIN: OWN + 'version = 2\n\n[plugins."io.containerd.nri.v1.nri"]\ndisable = false\n\n'
            '[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = true\n'
        },
    ),
    "no file of 2.0": Case({}, ON, ON, {}, "2.0.0"),
    "a file of 2.0 of version 2": Case({MAIN: "version = 2\n" + CRI}, ON, ON, {}, "2.0.1"),
    "version 3": Case({MAIN: "version = 3\n"}, ON, ON, {}, None),
    "version 2 of whatever": Case(
        {MAIN: "version = 2\n" + NRI + "disable = false\n"},
        RuntimeSwitch(True, MAIN),
        OFF,
        {
            MAIN: "version = 2\n" + NRI + "disable = false\n" + BEGIN + CRI + "enable_cdi = true\n" + END,
        },
        None,
    ),
    "the default file of 1.7": Case(
        {MAIN: "version = 2\n" + CRI + "  enable_cdi = false\n" + NRI + "  disable = true\n"},
        RuntimeSwitch(False, MAIN),
        RuntimeSwitch(False, MAIN),
        {
            MAIN: "version = 2\n"
            + CRI
            + BEGIN
            + "#-   enable_cdi = false\n  enable_cdi = true\n"
            + END
            + NRI
            + BEGIN
            + "#-   disable = true\n  disable = false\n"
            + END
        },
    ),
    "1.7 takes the last table as a whole": Case(
        {
            MAIN: "version = 2\n" + IMPORTS + CRI + "enable_cdi = true\n" + NRI + "disable = false\n",
            DIRECTORY + "/10-registry.toml": "version = 2\n" + CRI[:-2] + ".registry]\n",
        },
        RuntimeSwitch(True, MAIN),
        OFF,
        {
            DIRECTORY + "/10-registry.toml": "version = 2\n"
            + CRI[:-2]
            + ".registry]\n"
            + BEGIN
            + CRI
            + "enable_cdi = true\n"
            + END
        },
    ),
    "2.0 merges them": Case(
        {
            MAIN: "version = 2\n" + IMPORTS + CRI + "enable_cdi = false\n",
            DIRECTORY + "/10-registry.toml": "version = 2\n" + CRI[:-2] + ".registry]\n",
        },
        ON,
        RuntimeSwitch(False, MAIN),
        {DROP_IN: OWN + 'version = 2\n\n[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = true\n'},
        "2.0.5",
    ),
    "a file of its own": Case(
        {MAIN: "version = 2\n" + IMPORTS + CRI + "enable_cdi = true\n"},
        OFF,
        RuntimeSwitch(True, MAIN),
        {DROP_IN: OWN + 'version = 2\n\n[plugins."io.containerd.nri.v1.nri"]\ndisable = false\n'},
    ),
    "another file is later": Case(
        {
            MAIN: "version = 3\n" + IMPORTS,
            DIRECTORY + "/99-z.toml": "version = 3\n" + NRI + "disable = true\n",
        },
        RuntimeSwitch(False, DIRECTORY + "/99-z.toml"),
        ON,
        {DIRECTORY + "/99-z.toml": "version = 3\n" + NRI + BEGIN + "#- disable = true\ndisable = false\n" + END},
        None,
    ),
    "version 1": Case(
        {MAIN: "[plugins.cri]\nenable_cdi = true\n"},
        OFF,
        RuntimeSwitch(True, MAIN),
        {MAIN: "[plugins.cri]\nenable_cdi = true\n" + BEGIN + "[plugins.nri]\ndisable = false\n" + END},
    ),
    "nobody may connect": Case(
        {MAIN: "version = 3\n" + NRI + "disable_connections = true\n" + CRI_3 + "enable_cdi = true\n"},
        RuntimeSwitch(False, MAIN),
        RuntimeSwitch(True, MAIN),
        {
            MAIN: "version = 3\n"
            + NRI
            + BEGIN
            + "disable = false\n"
            + END
            + BEGIN
            + "#- disable_connections = true\ndisable_connections = false\n"
            + END
            + CRI_3
            + "enable_cdi = true\n"
        },
        None,
    ),
    "CRI-O": Case({}, OFF, ON, {CRIO_DROP_IN: OWN + "[crio.nri]\nenable_nri = true\n"}, "1.29.1", CRIO),
    "CRI-O 1.30": Case({CRIO_MAIN: "[crio]\n"}, ON, ON, {}, "1.30.0", CRIO),
    "CRI-O is off": Case(
        {
            CRIO_MAIN: "[crio.nri]\nenable_nri = true\nnri_disable_connections = true\n"
            "[crio.runtime]\ncdi_spec_dirs = []\n",
            CRIO_DIRECTORY + "/10-crio.conf": "[crio.nri]\nenable_nri = false\n",
        },
        RuntimeSwitch(False, CRIO_DIRECTORY + "/10-crio.conf"),
        RuntimeSwitch(False, CRIO_MAIN),
        {
            CRIO_DROP_IN: OWN + "[crio.nri]\nenable_nri = true\nnri_disable_connections = false\n\n"
            '[crio.runtime]\ncdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]\n'
        },
        "1.31.0",
        CRIO,
    ),
    "k3s with a directory": Case(
        {
            K3S + "config.toml": 'version = 3\nimports = ["%sconfig-v3.toml.d/*.toml"]\n' % K3S
            + NRI
            + "disable = true\n"
        },
        RuntimeSwitch(False, K3S + "config.toml"),
        ON,
        {
            K3S + "config-v3.toml.d/99-kubenode-cpu-manager.toml": OWN
            + 'version = 3\n\n[plugins."io.containerd.nri.v1.nri"]\ndisable = false\n'
        },
        None,
        OF_K3S,
    ),
    "k3s with a template": Case(
        {K3S + "config.toml": "version = 2\n" + CRI + "enable_cdi = true\n"},
        OFF,
        RuntimeSwitch(True, K3S + "config.toml"),
        {
            K3S + "config.toml.tmpl": OWN_TEMPLATE
            + '{{ template "base" . }}\n\n[plugins."io.containerd.nri.v1.nri"]\ndisable = false\n'
        },
        "1.7.20",
        OF_K3S,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_there_and_back(case: Case, tmp_path: Path) -> None:
    tree = node(tmp_path, case.files)
    runtime = find_runtime(tree, case.endpoint, "k3s", case.version)
    state = read_state(tree, runtime)
    assert (state.nri, state.cdi) == (case.nri, case.cdi)
    assert {path: (new or b"").decode() for path, new in plan(tree, runtime).items()} == case.written
    assert plan_absent(tree, runtime) == {}

    tree = node(tmp_path, case.written)
    state = read_state(tree, runtime)
    if not any(path.endswith(".tmpl") for path in case.written):
        assert (state.nri.on, state.cdi.on) == (True, True)
    assert plan(tree, runtime) == {}
    before = {path: case.files[path].encode() if path in case.files else None for path in case.written}
    assert plan_absent(tree, runtime) == before


def test_one_of_both(tmp_path: Path) -> None:
    tree = node(tmp_path, {MAIN: "version = 2\n"})
    runtime = find_runtime(tree, None, "", "1.7.1")
    assert set(plan(tree, runtime, nri=False, cdi=False)) == set()
    assert b"enable_cdi" not in (plan(tree, runtime, cdi=False)[MAIN] or b"")
    assert b"nri" not in (plan(tree, runtime, nri=False)[MAIN] or b"")


def test_more_is_wanted_later(tmp_path: Path) -> None:
    """What was written before is planned anew: a block never stands in another."""
    text = "version = 2\n"
    tree = node(tmp_path, {MAIN: text})
    runtime = find_runtime(tree, None, "", "1.7.1")
    tree = node(tmp_path, {MAIN: (plan(tree, runtime, cdi=False)[MAIN] or b"").decode()})
    tree = node(tmp_path, {MAIN: (plan(tree, runtime)[MAIN] or b"").decode()})
    assert (read_state(tree, runtime).nri.on, read_state(tree, runtime).cdi.on) == (True, True)
    assert tree.read_text(MAIN).count(BEGIN) == 1
    assert plan_absent(tree, runtime) == {MAIN: text.encode()}


@pytest.mark.parametrize(
    ("files", "endpoint", "version", "message"),
    [
        pytest.param({}, CONTAINERD, "1.6.36", "containerd 1.6 has no NRI", id="old"),
        pytest.param({}, CRIO, "1.25.1", "CRI-O 1.25 has no NRI", id="old CRI-O"),
        pytest.param({MAIN: "version = 5\n"}, CONTAINERD, "1.7.1", "is of version 5", id="new"),
        pytest.param(
            {MAIN: 'version = 2\ndisabled_plugins = ["cri"]\n'}, CONTAINERD, None, "disabled_plugins", id="not loaded"
        ),
        pytest.param({MAIN: "version = 2"}, CONTAINERD, None, "line 1: the last line has no end", id="no end"),
        pytest.param({MAIN: "plugins = {}\n"}, CONTAINERD, None, "cannot be added to", id="inline"),
        pytest.param(
            {CRIO_DIRECTORY + "/99-z": "[crio.nri]\nenable_nri = false\n"},
            CRIO,
            None,
            "99-z: says otherwise",
            id="later",
        ),
        pytest.param({}, OF_K3S, None, "is not there yet", id="k3s was never started"),
        pytest.param({K3S + "config.toml": "version = 2\n" + CRI}, OF_K3S, None, "has [plugins.", id="a table of k3s"),
        pytest.param(
            {K3S + "config.toml": "version = 2\n", K3S + "config.toml.tmpl": "version = 2\n"},
            OF_K3S,
            None,
            "config.toml.tmpl, which is not ours",
            id="a template of others",
        ),
    ],
)
def test_what_is_refused(
    files: Mapping[str, str], endpoint: str, version: str | None, message: str, tmp_path: Path
) -> None:
    tree = node(tmp_path, files)
    with pytest.raises(RefusedError) as caught:
        plan(tree, find_runtime(tree, endpoint, "k3s", version))
    assert message in str(caught.value)
    assert caught.value.kind == "runtime_config"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({MAIN: "version\n"}, "cannot be understood: line 1"),
        ({MAIN: BEGIN}, "cannot be understood: line 1: # BEGIN"),
        ({MAIN: 'imports = ["/etc/*/x.toml"]\n'}, "patterns of directories"),
        ({MAIN: 'imports = ["/etc/%d"]\n' % 0, "/etc/0": 'imports = ["/etc/1"]\n', "/etc/1": "]"}, "/etc/1: cannot"),
    ],
)
def test_what_cannot_be_understood(files: Mapping[str, str], message: str, tmp_path: Path) -> None:
    tree = node(tmp_path, files)
    with pytest.raises(NodeError) as caught:
        plan(tree, find_runtime(tree, None))
    assert message in str(caught.value)
