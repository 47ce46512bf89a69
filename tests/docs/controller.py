# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""As much of AWX's API as awx.awx needs to make what configure.yml makes. Objects are kept as they come.

A survey is checked as AWX 24 checks it: one without questions is refused, and so is a question that lacks a field.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterator
from urllib.parse import parse_qs, urlsplit

from ansible_collections.kubenode.cpu_manager.tests.support.serving import listening

Object = dict[str, Any]

_API = "/api/v2/"
_PATH = re.compile(_API + "(?P<kind>[a-z_]+)/(?:(?P<number>[0-9]+)/(?:(?P<related>[a-z_]+)/)?)?")
_SURVEY = {"name": str, "description": str, "spec": list}
_QUESTION = {"type": str, "question_name": str, "variable": str, "required": bool}
_TYPES = {"text", "textarea", "password", "multiplechoice", "multiselect", "integer", "float"}
# What AWX lists under one name.
_LISTS = {"unified_job_templates": ("projects", "job_templates")}


class Controller(ThreadingHTTPServer):
    """What it has: {kind: its objects}; the surveys by the number of their template; and what was refused."""

    daemon_threads = True

    def __init__(self) -> None:
        self.objects: dict[str, list[Object]] = {}
        self.surveys: dict[int, Object] = {}
        self.refused: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    def add(self, kind: str, given: Object) -> Object:
        """Have an object of a kind."""
        number = 1 + sum(map(len, self.objects.values()))
        url = "%s%s/%d/" % (_API, kind, number)
        related = {name: "%s%s/" % (url, name) for name in ("survey_spec", "update")}
        fixed = {"id": number, "type": kind[:-1], "url": url, "related": related, "summary_fields": {}}
        made = {"scm_revision": "", **given, **fixed}
        self.objects.setdefault(kind, []).append(made)
        return made

    def all_of(self, *kinds: str) -> list[Object]:
        """Return the objects of these kinds."""
        return [given for kind in kinds for given in self.objects.get(kind, [])]


@contextmanager
def serve(**names: list[str]) -> Iterator[Controller]:
    """Yield a controller that has objects of these names, {kind: names}, and listens until the end."""
    controller = Controller()
    for kind, of_kind in names.items():
        for name in of_kind:
            controller.add(kind, {"name": name})
    with listening(controller):
        yield controller


def wrong_with(survey: Object) -> str:
    """Return why AWX does not take a survey; empty where it does."""
    wrong = ["a survey's %s" % field for field, kind in _SURVEY.items() if not isinstance(survey.get(field), kind)]
    if wrong:
        return wrong[0]
    questions = survey["spec"]
    for question in questions:
        wrong += [
            "a question's %s" % field for field, kind in _QUESTION.items() if not isinstance(question.get(field), kind)
        ]
        wrong += [] if question.get("type") in _TYPES else ["a question's type"]
        wrong += ["choices"] if str(question.get("type")).startswith("multi") and "choices" not in question else []
        wrong += [limit for limit in ("min", "max") if not isinstance(question.get(limit, 0), int)]
    wrong += [] if questions else ["no questions"]
    wrong += [] if len({question.get("variable") for question in questions}) == len(questions) else ["variables"]
    return wrong[0] if wrong else ""


class _Handler(BaseHTTPRequestHandler):
    server: Controller

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        kind, number, related = self._place()
        if related == "survey_spec":
            self._say(200, self.server.surveys.get(number, {}))
        elif related:
            self._say(200, {"count": 0, "next": None, "results": []})
        elif number:
            self._say(200, self._object(number))
        else:
            wanted = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            found = [
                given
                for given in self.server.all_of(*_LISTS.get(kind, (kind,)))
                if all(str(given.get(name)) == value for name, value in wanted.items())
            ]
            self._say(200, {"count": len(found), "next": None, "results": found})

    def do_POST(self) -> None:  # pylint: disable=invalid-name
        kind, number, related = self._place()
        given = self._given()
        if related == "survey_spec":
            wrong = wrong_with(given)
            if wrong:
                self.server.refused.append(wrong)
            else:
                self.server.surveys[number] = given
            self._say(400 if wrong else 200, {"error": wrong} if wrong else {})
        elif related == "update":
            self._object(number)["scm_revision"] = "of-the-project"
            done = {"finished": True, "failed": False, "status": "successful", "scm_revision": "of-the-project"}
            self._say(202, self.server.add("project_updates", done))
        else:
            self._say(201, self.server.add(kind, given))

    def do_PATCH(self) -> None:  # pylint: disable=invalid-name
        _kind, number, _related = self._place()
        found = self._object(number)
        found.update(self._given())
        self._say(200, found)

    def do_DELETE(self) -> None:  # pylint: disable=invalid-name
        self.server.surveys.pop(self._place()[1], None)
        self._say(200, {})

    def _place(self) -> tuple[str, int, str]:
        found = _PATH.fullmatch(urlsplit(self.path).path)
        assert found, self.path
        assert self.headers["Authorization"] == "Bearer a-token"
        return found["kind"], int(found["number"] or 0), found["related"] or ""

    def _object(self, number: int) -> Object:
        (found,) = (given for given in self.server.all_of(*self.server.objects) if given["id"] == number)
        return found

    def _given(self) -> Object:
        given: Object = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return given

    def _say(self, status: int, answer: Object) -> None:
        content = json.dumps(answer).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-API-Product-Name", "AWX")
        self.send_header("X-API-Product-Version", "24.6.1")
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing of each request."""
