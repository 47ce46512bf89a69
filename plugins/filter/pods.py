# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods of the API server and of manifests, on the controller. Each filter is documented in the file of its name."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ansible.errors import AnsibleFilterError

from ..module_utils._base.errors import MALFORMED, InputError
from ..plugin_utils.rollout.pods import identities, judge_drain
from ..plugin_utils.yaml_of_others import read_documents


def _reporting(function: Callable[..., Any]) -> Callable[..., Any]:
    def filter_(*arguments: object, **options: object) -> object:
        try:
            return function(*arguments, **options)
        except (InputError, *MALFORMED) as error:
            raise AnsibleFilterError(str(error)) from None

    return filter_


def manifests(text: str, where: str) -> list[Any]:
    """Return the manifests in a text. Raises InputError where it has none, or something else; where: the name of its
    file."""
    documents = read_documents(text, where)
    if not documents:
        raise InputError("there is nothing in it", where, "give a file with pods, or with what makes pods")
    if not all(isinstance(document, Mapping) for document in documents):
        raise InputError("not all of it are manifests", where, "give objects of Kubernetes, as kubectl prints them")
    return documents


class FilterModule:
    """The filters of this collection that look at pods."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return their names and functions."""
        filters: dict[str, Callable[..., Any]] = {
            "manifests": manifests,
            "drain_verdict": lambda pods, **options: judge_drain(pods, **options).to_dict(),
            "pod_identities": identities,
        }
        return {name: _reporting(function) for name, function in filters.items()}
