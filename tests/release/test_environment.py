# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Execution environments: ansible-builder makes the context of one, and finds what the collection needs in it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from .conftest import CHECKOUT, Machine

HERE = CHECKOUT / "extensions" / "execution-environment"


@pytest.fixture(scope="module")
def collections(machine: Machine, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the collection as a build of an image installs it."""
    directory = tmp_path_factory.mktemp("collections")
    # Whether or not it is installed at home already.
    machine.run("ansible-galaxy", "collection", "install", "--force", "--no-deps", "-p", str(directory), str(built))
    return directory


def test_the_context_of_an_image(tools: Path, tmp_path: Path) -> None:
    context = tmp_path / "context"
    command = [str(tools / "ansible-builder"), "create", "--context", str(context), "--output-filename=Containerfile"]
    done = subprocess.run(
        [*command, "--file", str(HERE / "execution-environment.yml")],
        cwd=tmp_path,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "warning" not in done.stdout.lower(), done.stdout
    galaxy = yaml.safe_load((context / "_build" / "requirements.yml").read_text("utf-8"))
    assert galaxy["collections"] == [{"name": "kubenode.cpu_manager"}]
    recipe = (context / "Containerfile").read_text("utf-8")
    base = yaml.safe_load((HERE / "execution-environment.yml").read_text("utf-8"))["images"]["base_image"]["name"]
    assert 'ARG EE_BASE_IMAGE="%s"' % base in recipe
    assert re.search(r"ansible-galaxy collection install .*-r requirements\.yml", recipe)


def test_what_an_image_gets_besides(tools: Path, collections: Path, tmp_path: Path) -> None:
    python, system = tmp_path / "requirements.txt", tmp_path / "bindep.txt"
    write = ["--write-pip", str(python), "--write-bindep", str(system)]
    subprocess.run([str(tools / "ansible-builder"), "introspect", str(collections), *write], check=True)
    assert re.findall(r"^kubernetes>=[0-9.]+", python.read_text("utf-8"), re.MULTILINE)
    assert {line.split()[0] for line in system.read_text("utf-8").splitlines() if line} == {
        "openssh-client",
        "openssh-clients",
    }
    # bindep itself reads the file. It ends with 1 where a package is not installed here.
    done = subprocess.run(
        [str(tools / "bindep"), "--brief", "--file", str(system)], check=False, stdout=subprocess.PIPE, text=True
    )
    assert (done.returncode, set(done.stdout.split()) <= {"openssh-client", "openssh-clients"}) in (
        (0, True),
        (1, True),
    )


def test_the_library_can_be_installed_as_it_says(machine: Machine, collections: Path) -> None:
    machine.pip("-r", str(collections / "ansible_collections/kubenode/cpu_manager/meta/ee-requirements.txt"))
    assert machine.run("python", "-c", "import kubernetes; print(kubernetes.__version__)").strip()
