# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What images are made of, as images.yml says it: a recipe has what the one that it extends has, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.tests.cluster.binaries import binaries
from ansible_collections.kubenode.cpu_manager.tests.cluster.debian import UnavailableError

from .host import NoMachinesError

HERE = Path(__file__).resolve().parent
RECIPES = HERE / "images.yml"
# Below the name of an image, what it has beside its packages.
FILES = HERE / "files"


class Recipe(NamedTuple):
    """What an image is made of; images.yml says what each means. `names`: its own, after those that it extends."""

    names: tuple[str, ...]
    size: str
    kernel_release: str
    packages: tuple[str, ...]
    modules: tuple[str, ...]
    masked_units: tuple[str, ...]
    kubernetes: tuple[str, ...]
    containers: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.names[-1]

    def files(self) -> list[Path]:
        """Return all that it has beside its packages."""
        return [path for name in self.names for path in sorted((FILES / name).rglob("*")) if path.is_file()]

    def programs(self) -> list[Path]:
        """Return those of Kubernetes, built if they are not there. Raises NoMachinesError if they cannot be."""
        if not self.kubernetes:
            return []
        try:
            return [binaries(self.kubernetes) / name for name in self.kubernetes]
        except UnavailableError as error:
            raise NoMachinesError("the image %s has parts of Kubernetes: %s" % (self.name, error)) from error


def read_recipes(path: Path = RECIPES) -> dict[str, Recipe]:
    """Return {name: recipe}. Raises InputError for one that extends an image that is not there."""
    texts: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))

    def lineage(name: str) -> tuple[str, ...]:
        base = texts[name].get("extends")
        if base is None:
            return (name,)
        if base not in texts:
            raise InputError("%s: %s extends %s, which is not there" % (path.name, name, base))
        return (*lineage(base), name)

    def recipe(name: str) -> Recipe:
        names = lineage(name)
        keys_of_lists = Recipe._fields[3:]
        lists = {key: tuple(entry for of in names for entry in texts[of].get(key, ())) for key in keys_of_lists}
        return Recipe(names, texts[name]["size"], texts[name].get("kernel_release", ""), **lists)

    return {name: recipe(name) for name in texts}
