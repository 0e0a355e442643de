// Makes the page of the explorer: one script and one style, where the Python package has them.
// `make web` calls it. What it was made of stands in the first line of the script, as a digest:
// tests/python/test_web_bundle.py says when the sources are newer.
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, readdirSync } from "node:fs";
import { build } from "esbuild";

const out = "../python/uflip/web/static";
const sources = [
  ...readdirSync("src").sort().map((name) => `src/${name}`),
  "build.mjs",
  "package-lock.json",
  "package.json",
  "tsconfig.json",
];
const hash = createHash("sha256");
for (const name of sources) hash.update(`${name}\n`).update(readFileSync(name));

const licence = readFileSync("node_modules/uplot/LICENSE", "utf8");

await build({
  entryPoints: ["src/app.ts", "src/app.css"],
  outdir: out,
  bundle: true,
  minify: true,
  target: "es2022",
  format: "iife",
  legalComments: "inline",
  banner: { js: `// of sources ${hash.digest("hex")}\n/* Has uPlot in it:\n${licence}*/` },
});
copyFileSync("src/index.html", `${out}/index.html`);
