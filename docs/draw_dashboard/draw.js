// Copyright (c) 2026, the kubenode.cpu_manager developers
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Bundles page.mjs, opens it in Chromium and writes the picture of it.
//
//     node draw.js JOB     JOB: {"modules", "chromium", "picture", "data": what page.mjs draws}
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const job = JSON.parse(fs.readFileSync(process.argv[2], "utf-8"));
const { chromium } = require(path.join(job.modules, "playwright-core"));
const UPNG = require(path.join(job.modules, "upng-js"));
const esbuild = require(path.join(job.modules, "esbuild"));
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const ORIGIN = "http://dashboard.example";
const PAGE = `<!doctype html><meta charset=utf-8><style>body { margin: 0 }</style><link rel=stylesheet href=/page.css>
<div id=root></div><script type=module src=/page.js></script>`;
// Grafana's pictograms are in none of its packages.
const PICTOGRAM = "<svg xmlns='http://www.w3.org/2000/svg'/>";
// Its font is in none of them, either, but in a package of its own.
const FONTS = { "Inter-Regular.woff2": 400, "Inter-Medium.woff2": 500 };
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
  ".woff2": "font/woff2" };
// Of the palette of the picture, which takes about half of the bytes so.
const COLORS = 256;

async function bundle() {
  const made = await esbuild.build({
    entryPoints: [path.join(__dirname, "page.mjs")],
    outfile: "/page.js",
    nodePaths: [job.modules],
    bundle: true,
    write: false,
    format: "esm",
    minify: true,
    define: { "process.env.NODE_ENV": "'production'" },
    loader: { ".woff": "dataurl", ".woff2": "dataurl", ".png": "dataurl", ".svg": "dataurl", ".ttf": "empty" },
    logLevel: "error",
  });
  return Object.fromEntries(made.outputFiles.map((file) => [path.basename(file.path), file.text]));
}

function fonts() {
  const place = path.join(job.modules, "@fontsource", "inter", "files");
  return Object.fromEntries(Object.entries(FONTS).map(([name, weight]) =>
    [name, fs.readFileSync(path.join(place, `inter-latin-${weight}-normal.woff2`))]));
}

async function screenshot(files) {
  const browser = await chromium.launch({ executablePath: job.chromium, args: QUIET });
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, timezoneId: "UTC", locale: "en-US" });
    const complaints = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.stack));
    // Nothing comes from elsewhere.
    await page.route("**/*", (route) => {
      const name = path.posix.basename(new URL(route.request().url()).pathname) || "index.html";
      const kind = path.extname(name);
      const body = kind === ".svg" ? PICTOGRAM : files[name];
      return body === undefined ? route.abort() : route.fulfill({ body, contentType: TYPES[kind] });
    });
    await page.addInitScript((data) => { window.drawn = data; }, job.data);
    await page.goto(ORIGIN);
    const graphs = job.data.dashboard.panels.filter((panel) => panel.type === "timeseries").length;
    await page.waitForFunction((count) => document.querySelectorAll("canvas").length >= count, graphs)
      .catch((error) => complaints.push(error.message));
    // A graph is drawn again once its legend has its height.
    await page.waitForTimeout(2000);
    const text = await page.locator("#root").innerText();
    complaints.push(...job.data.dashboard.panels.filter(({ title }) => !text.includes(title))
      .map(({ title }) => `"${title}" is not drawn`));
    if (text.includes("No data")) complaints.push("a panel has no data");
    if (complaints.length) throw new Error(complaints.join("\n"));
    return await page.screenshot({ fullPage: true });
  } finally {
    await browser.close();
  }
}

async function main() {
  const files = { ...(await bundle()), ...fonts(), "index.html": PAGE };
  const { width, height, ...picture } = UPNG.decode(await screenshot(files));
  const pixels = UPNG.toRGBA8({ width, height, ...picture });
  fs.writeFileSync(job.picture, Buffer.from(UPNG.encode(pixels, width, height, COLORS)));
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
