# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.fields import (
    float_text,
    image_pattern_fault,
    url_scheme,
)


@pytest.mark.parametrize(
    ("url", "scheme"),
    [
        ("dns://localhost:4317", "dns"),
        ("unix:///run/otel.sock", "unix"),
        ("unix-abstract://name", "unix-abstract"),
        ("http://host/path?query", "http"),
        ("HTTP://host", "http"),
        ("http://user:pass@host:80/", "http"),
        ("http://[::1]:80/", "http"),
        ("http://[fe80::1%25en0]:80/", "http"),
        ("dns://host#fragment", "dns"),
        ("http://", "http"),
        ("//host", ""),
        ("/path//", ""),
        ("///path", ""),
        ("mailto:a b//", "mailto"),
        ("a/b:c//", ""),
    ],
)
def test_scheme(url: str, scheme: str) -> None:
    assert url_scheme(url) == (scheme, "")


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("http://a\nb", 'parse "http://a\\nb": net/url: invalid control character in URL'),
        ("://host", 'parse "://host": missing protocol scheme'),
        ("1a:b//", 'parse "1a:b//": first path segment in URL cannot contain colon'),
        ("http://host:port", 'parse "http://host:port": invalid port ":port" after host'),
        ("http://a:1:b", 'parse "http://a:1:b": invalid port ":b" after host'),
        ("http://[::1", "parse \"http://[::1\": missing ']' in host"),
        ("http://[::1]a", 'parse "http://[::1]a": invalid port "a" after host'),
        ("http://a b/", 'parse "http://a b/": invalid character " " in host name'),
        ("http://a%zz/", 'parse "http://a%zz/": invalid URL escape "%zz"'),
        ("http://a%20b/", 'parse "http://a%20b/": invalid URL escape "%20"'),
        ("http://a/%zz", 'parse "http://a/%zz": invalid URL escape "%zz"'),
        ("http://a/%1", 'parse "http://a/%1": invalid URL escape "%1"'),
        ("http://a#%zz", 'parse "http://a#%zz": invalid URL escape "%zz"'),
        ("http://u{@host", 'parse "http://u{@host": net/url: invalid userinfo'),
        ("http://u%zz@host", 'parse "http://u%zz@host": invalid URL escape "%zz"'),
    ],
)
def test_url_fault(url: str, fault: str) -> None:
    assert url_scheme(url) == ("", fault)


@pytest.mark.parametrize(
    "pattern",
    [
        "docker.io/library/nginx",
        "registry.example.com/a/b_c",
        "registry.example.com:5000/a",
        "localhost/a",
        "[::1]:5000/a",
        "registry.example.com/*",
        "a/*",
    ],
)
def test_image_patterns(pattern: str) -> None:
    assert image_pattern_fault(pattern) == ""


INVALID = "failed to parse as an image name: "
FORMAT = INVALID + "invalid reference format"


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        (" a", "leading/trailing spaces are not allowed:  a"),
        ("a ", "leading/trailing spaces are not allowed: a "),
        ("", "the supplied pattern is too short: "),
        ("*", "not a valid wildcard pattern, only patterns ending with '/*' are allowed: *"),
        ("/*", "at least registry hostname is required"),
        ("a*", "not a valid wildcard pattern, only patterns ending with '/*' are allowed: a*"),
        ("*/a/*", "not a valid wildcard pattern, only patterns ending with '/*' are allowed: */a/*"),
        # Whole names only.
        ("nginx", "neither tag nor digest is accepted in an image reference: nginx"),
        ("library/nginx", "neither tag nor digest is accepted in an image reference: library/nginx"),
        ("reg.io/a:tag", "neither tag nor digest is accepted in an image reference: reg.io/a:tag"),
        (
            "reg.io/a@sha256:" + "0" * 64,
            "neither tag nor digest is accepted in an image reference: reg.io/a@sha256:" + "0" * 64,
        ),
        ("reg.io/A", FORMAT + ": repository name (A) must be lowercase"),
        ("reg.io/a b", FORMAT),
        ("reg.io/", FORMAT),
        ("reg.io/a:", FORMAT),
        ("reg.io/" + "a" * 5000, FORMAT),
        ("a" * 64, INVALID + "invalid repository name (%s), cannot specify 64-byte hexadecimal strings" % ("a" * 64)),
        ("reg.io/" + "a" * 256, INVALID + "repository name must not be more than 255 characters"),
        (
            "index.docker.io/library/a",
            "neither tag nor digest is accepted in an image reference: index.docker.io/library/a",
        ),
    ],
)
def test_image_pattern_fault(pattern: str, fault: str) -> None:
    assert image_pattern_fault(pattern) == fault


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (600.0, "600"),
        (0.9, "0.9"),
        (-1.5, "-1.5"),
        (0.0, "0"),
        (-0.0, "-0"),
        (123456.0, "123456"),
        (1e6, "1e+06"),
        (1234567.5, "1.2345675e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-1.5e100, "-1.5e+100"),
        (2, "2"),
        (10**400, "+Inf"),
        (-(10**400), "-Inf"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_float_text(number: float, text: str) -> None:
    assert float_text(number) == text
