# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a controller needs beside the archive, as a list of components (SBOM) in CycloneDX 1.6.

On a node the collection needs a Python and nothing else. Source: cyclonedx.org/docs/1.6/json
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Mapping
from urllib.parse import quote

from . import archive

# What an administrator installs, below a checkout.
REQUIREMENTS = ("requirements.txt", "meta/ee-requirements.txt")
_SHA256 = "SHA-256"


def write(made: Path, checkout: Path) -> Path:
    """Write the list beside an archive, and return it. Raises CalledProcessError where pip finds no package."""
    packages = [_component(found) for found in _found(checkout)]
    info = archive.metadata_of(made)
    released = {
        "type": "library",
        "bom-ref": made.name,
        "name": "%(namespace)s.%(name)s" % info,
        "version": info["version"],
        "hashes": [{"alg": _SHA256, "content": archive.sha256(made)}],
        "licenses": [{"license": {"id": name}} for name in info["license"]],
    }
    collections = [
        {"type": "library", "bom-ref": name, "name": name, "description": "Ansible collection, version " + wanted}
        for name, wanted in sorted(info["dependencies"].items())
    ]
    components = [*collections, *sorted(packages, key=lambda package: package["bom-ref"])]
    day = datetime.fromtimestamp(archive.time_of(checkout), timezone.utc)
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": day.isoformat(), "component": released},
        "components": components,
        "dependencies": [{"ref": made.name, "dependsOn": [component["bom-ref"] for component in components]}],
    }
    path = made.with_name(made.name.replace(".tar.gz", ".cdx.json"))
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def _found(checkout: Path) -> list[dict[str, Any]]:
    """Return what pip would install now, and what of that needs what."""
    files = [word for name in REQUIREMENTS for word in ("-r", str(checkout / name))]
    ask = ["-m", "pip", "install", "-qq", "--dry-run", "--ignore-installed", "--report", "-", *files]
    answer = subprocess.run([sys.executable, *ask], check=True, stdout=subprocess.PIPE).stdout
    return list(json.loads(answer)["install"])


def _component(found: Mapping[str, Any]) -> dict[str, Any]:
    metadata = found["metadata"]
    # Source: the type pypi of package-url.
    name = metadata["name"].lower().replace("_", "-")
    where = "pkg:pypi/%s@%s" % (name, quote(metadata["version"]))
    digest = found["download_info"]["archive_info"]["hashes"]["sha256"]
    hashes = [{"alg": _SHA256, "content": digest}]
    return {
        "type": "library",
        "bom-ref": where,
        "name": name,
        "version": metadata["version"],
        "purl": where,
        "hashes": hashes,
    }
