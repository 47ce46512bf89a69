#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_core_check
short_description: Check that kubernetes.core can be used, before a change needs it
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Fails if the collection C(kubernetes.core) is not installed on the controller, or is too old. Fails also if the
    Python library C(kubernetes) is too old, or not installed for the Python of the host on which the collection's
    modules run. The message names all that is missing, and the commands that install it.
  - Without this check, Ansible fails only at the first task that uses such a module, because it cannot resolve it.
  - It does not connect to a cluster.
extends_documentation_fragment:
  - kubenode.cpu_manager.attributes.info
attributes:
  action:
    description: Looks for the collection on the controller, and for the library on the host.
    support: full
options:
  purpose:
    description: What C(kubernetes.core) is needed for. The message begins with it.
    type: str
    required: true
  alternative:
    description: What can be done instead of an installation. The message ends with it.
    type: str
    default: ''
notes:
  - The lowest versions are C(kubernetes.core) 5.0.0 and C(kubernetes) 24.2.0.
"""

EXAMPLES = r"""
- name: Make sure that nodes can be drained
  kubenode.cpu_manager.kubernetes_core_check:
    purpose: draining the workers
    alternative: drain them yourself and set kubelet_drain to false
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
collection:
  description: The version of C(kubernetes.core); empty if it does not declare one, none if it is not installed.
  returned: always
  type: str
  sample: 6.2.0
library:
  description: The version of the Python library C(kubernetes); none where it cannot be imported.
  returned: always
  type: str
  sample: 32.0.1
python:
  description: The Python that has to have the library.
  returned: always
  type: str
  sample: /usr/bin/python3
"""

import sys

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Run the half that runs on the host, which tells which library its Python has."""
    module = AnsibleModule(
        argument_spec={
            "purpose": {"type": "str", "required": True},
            "alternative": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    try:
        import kubernetes
    except ImportError:
        version = None
    else:
        version = str(kubernetes.__version__)
    module.exit_json(changed=False, library=version, python=sys.executable)


if __name__ == "__main__":
    main()
