// A result: its key figures, its row of Table 3, its micro-benchmarks as small multiples, its
// warnings. Every number links to its runs.

import { ask, type Plain } from "./api";
import * as channel from "./channel";
import { color, facts, fill, h, table, type Child } from "./dom";
import { many } from "./paint";
import { Plot, type Scale } from "./plot";
import { link, type Route } from "./route";
import { saveCsv } from "./save";
import { count, duration, logTicks, ms, percent, spaced, when } from "./words";

export const HUES: Record<string, string> = { SR: "sr", RR: "rr", SW: "sw", RW: "rw" };

export function hue(pattern: string): string {
  return color(HUES[pattern] ?? "ink");
}

export async function show(main: HTMLElement, route: Route): Promise<void> {
  const key = route.parts[0] ?? "";
  const found = await ask("result", { key });
  const shared = extent(found);
  fill(main,
    h("nav", { class: "crumbs", "aria-label": "Place" }, h("a", { href: "#/results" }, "Results"), " › ", h("span", { "aria-current": "page" }, found.name)),
    h("h1", {}, found.device, found.simulated ? h("span", { class: "badge" }, "simulated") : null),
    facts([
      ["measured", when(found.created_utc)], ["scale", found.scale], ["state", found.state],
      ["durability", h("span", { title: found.durability_means }, found.durability)],
      ["runs", `${count(found.finished)} of ${count(found.planned)}${found.status === "complete" ? "" : `, ${found.status}`}`],
      ["means known to 5 %", found.experiments ? `${found.known} of ${found.experiments} (${percent(found.known / found.experiments)})` : ""],
      ["uflip", found.uflip_version],
    ]),
    found.headline ? h("p", { class: "abstract" }, found.headline) : null,
    doubts(found),
    h("section", { class: "tiles", "aria-label": "Baselines" }, found.baselines.map((each: Plain) => tile(key, each))),
    found.cells ? h("section", {}, h("h2", {}, "Key characteristics"),
      table(found.columns, [found.cells], "As a row of uFLIP's Table 3", 0),
      h("p", { class: "quiet" }, found.note)) : null,
    found.advice ? h("section", { class: "hints" }, h("h2", {}, "Design hints"), h("p", {}, found.advice.class),
      table(["Hint", "Statement", "Evidence", "Advice"], found.advice.hints.map((hint: Plain): Child[] => [
        h("span", { class: `hint ${hint.verdict.split(" ")[0]}` }, `${hint.number} ${hint.verdict}`), hint.statement, hint.because, hint.advice || "–",
      ]), "uFLIP's seven hints (§5.3) for this device", 4)) : null,
    found.is_open_channel ? await channel.show(key) : null,
    h("h2", {}, "Micro-benchmarks"),
    h("p", { class: "quiet" }, "Mean response time on one logarithmic scale, with the interval in which the mean lies; dotted: the baselines. Click a point to see its run."),
    h("div", { class: "multiples" }, found.benchmarks.map((each: Plain) => multiple(key, found, each, shared))),
    h("h2", {}, "All runs"),
    rail(key, found.runs),
  );
}

function tile(key: string, run: Plain): HTMLElement {
  const said = run.statistics;
  if (!said) return h("div", { class: "tile" }, h("h2", {}, run.pattern));
  const tail = said.p99_ns !== null ? ["p99", said.p99_ns] : said.p95_ns !== null ? ["p95", said.p95_ns] : ["max", said.max_ns];
  return h("a", { class: "tile", href: link("run", [key, run.runs[0]]), vars: { "--hue": `var(--${HUES[run.pattern] ?? "ink"})` } },
    h("h2", {}, run.pattern, " ", h("span", {}, run.words)),
    h("p", { class: "big" }, duration(said.mean_ns)),
    h("p", { class: "interval" }, run.half_width_ns === null ? "not known how well" : `± ${duration(run.half_width_ns)}`, run.converged === false ? h("span", { class: "badge" }, "not known to 5 %") : null),
    facts([["p50", duration(said.p50_ns)], [String(tail[0]), duration(tail[1])], ["I/Os", count(said.count)]]));
}

function doubts(found: Plain): HTMLElement | null {
  if (!found.warnings.length) return null;
  return h("details", { class: "notice", open: found.warnings.length <= 3 },
    h("summary", {}, `${found.warnings.length} ${found.warnings.length === 1 ? "doubt" : "doubts"} about these numbers`),
    found.warnings.map((each: Plain) => h("div", { class: "doubt" },
      h("p", {}, h("b", {}, each.message), " ", h("code", {}, each.code)),
      h("p", { class: "quiet" }, each.advice),
      each.runs.length ? h("p", {}, each.runs.length === 1 ? "Run: " : "Runs: ", each.runs.slice(0, 12).map((run: string) => [h("a", { href: link("run", [found.key, run]) }, run), " "]), each.runs.length > 12 ? `and ${each.runs.length - 12} more` : "") : null)));
}

interface Point { at: number; mean: number; low: number; high: number; pattern: string; of: Plain }

function extent(found: Plain): { low: number; high: number } {
  let [low, high] = [Infinity, 0];
  for (const benchmark of found.benchmarks)
    for (const { points } of benchmark.patterns)
      for (const point of points) {
        low = Math.min(low, point.statistics.mean_ns);
        high = Math.max(high, point.statistics.mean_ns);
      }
  return high > 0 ? { low: low / 1.6, high: high * 1.6 } : { low: 1, high: 10 };
}

/** The colour of each pattern of a figure: the four have theirs, mixes get others. */
function huesOf(patterns: Plain[]): (pattern: string) => string {
  const others = patterns.map((each) => each.pattern).filter((each: string) => !HUES[each]);
  return (pattern) => (HUES[pattern] ? hue(pattern) : many(others.indexOf(pattern)));
}

function multiple(key: string, found: Plain, benchmark: Plain, range: { low: number; high: number }): HTMLElement {
  const patterns: Plain[] = benchmark.patterns;
  const tone = huesOf(patterns);
  const title = titleOf(found, benchmark);
  const points: Point[] = patterns.flatMap(({ pattern, points }) => points.map((of: Plain): Point => {
    const half = of.half_width_ns ?? 0;
    const mean = of.statistics.mean_ns;
    return { at: of.at, mean, low: Math.max(mean - half, mean / 1e3), high: mean + half, pattern, of };
  }));
  const places: number[] = benchmark.values.map((each: Plain) => each.at);
  if (!points.length) return h("article", {}, h("h3", {}, title), others(key, benchmark));
  const margin = Math.max((Math.max(...places) - Math.min(...places)) * 0.05, 0.4);
  const x: Scale = {
    range: { low: Math.min(...places) - margin, high: Math.max(...places) + margin }, label: benchmark.axis,
    ticks: (low, high, about) => spaced(places, (high - low) / (about * 1.6)), tick: () => (value) => benchmark.values.find((each: Plain) => each.at === value)?.label ?? "",
  };
  const y: Scale = { range, log: true, label: "mean response time", ticks: (low, high) => logTicks(low, high), tick: () => duration };
  const said = h("p", { class: "readout", "aria-live": "polite" });
  const nearest = (at: number, value: number, plane: { x(v: number): number; y(v: number): number }): Point | undefined => {
    const far = (point: Point) => Math.hypot(plane.x(point.at) - plane.x(at), plane.y(point.mean) - plane.y(value));
    const best = points.reduce((one, other) => (far(other) < far(one) ? other : one));
    return far(best) < 24 ? best : undefined;
  };
  const idle = () => fill(said, benchmark.finding);
  const plot = new Plot({
    title: `${title}: ${found.device}`, name: nameOf(found, benchmark), height: 230, x, y,
    paint: (pen, plane) => {
      for (const [pattern, level] of Object.entries(benchmark.levels_ms as Record<string, number | null>))
        if (level && patterns.some((each) => each.pattern === pattern))
          pen.line([[plane.left, plane.y(level * 1e6)], [plane.left + plane.width, plane.y(level * 1e6)]], tone(pattern), 1, [1, 4]);
      for (const { pattern } of patterns) {
        const own = points.filter((each) => each.pattern === pattern);
        for (const each of own) pen.line([[plane.x(each.at), plane.y(each.low)], [plane.x(each.at), plane.y(each.high)]], tone(pattern), 3);
        pen.line(own.map((each) => [plane.x(each.at), plane.y(each.mean)]), tone(pattern), 1.5);
        for (const each of own) pen.dot(plane.x(each.at), plane.y(each.mean), 3, tone(pattern));
      }
    },
    at: (at, value, plane) => {
      const point = at === null ? undefined : nearest(at, value, plane);
      plot.over.style.cursor = point ? "pointer" : "default";
      if (point) fill(said, h("b", {}, `${point.pattern} ${point.of.label}`), `: ${duration(point.mean)} ± ${duration(point.of.half_width_ns)}, p99 ${duration(point.of.statistics.p99_ns)}${point.of.converged === false ? ", not known to 5 %" : ""}`);
      else idle();
    },
    clicked: (at, value, plane) => {
      const point = nearest(at, value, plane);
      if (point) location.hash = link("run", [key, point.of.runs[0]]);
    },
  });
  idle();
  return h("article", {},
    h("h3", {}, title),
    h("p", { class: "quiet" }, benchmark.question),
    h("ul", { class: "legend" }, patterns.map(({ pattern, words }) => h("li", { vars: { "--hue": tone(pattern) } }, pattern, " ", words))),
    plot.node, said,
    h("details", {}, h("summary", {}, "Numbers, and the run of each"),
      table(["", benchmark.axis, "mean", "±", "p50", "p99", "max [ms]", "run"], points.map(({ pattern, of }): Child[] => [
        pattern, of.label, ms(of.statistics.mean_ns), ms(of.half_width_ns), ms(of.statistics.p50_ns), ms(of.statistics.p99_ns), ms(of.statistics.max_ns),
        of.runs.map((run: string, i: number) => [h("a", { href: link("run", [key, run]), "aria-label": `Run ${run}` }, i ? `${i + 1}` : "open"), " "]),
      ]), `${title}, response time [ms]`, 2),
      h("p", { class: "quiet" }, benchmark.how_to_read),
      plot.saving([["CSV", () => saveCsv(nameOf(found, benchmark), ["pattern", "value", "mean_ns", "half_width_ns", "converged", "runs"], points.map(({ pattern, mean, of }) => [pattern, of.value, mean, of.half_width_ns, of.converged, of.runs.join(" ")]))]])),
    others(key, benchmark));
}

/** What a figure is of; over which parameter, where a micro-benchmark has several figures. */
function titleOf(found: Plain, { name, title, axis }: Plain): string {
  return found.benchmarks.filter((each: Plain) => each.name === name).length > 1 ? `${title}: ${axis}` : title;
}

function nameOf(found: Plain, benchmark: Plain): string {
  return [found.name, benchmark.name, benchmark.parameter ?? ""].join("-");
}

function hueVariable(pattern: string): string {
  return `var(--${HUES[pattern] ?? "ink"})`;
}

function others(key: string, benchmark: Plain): HTMLElement | null {
  if (!benchmark.others.length) return null;
  return h("ul", {}, benchmark.others.map((each: Plain) => h("li", {}, h("a", { href: link("run", [key, each.runs[0]]) }, `${each.pattern} ${each.runs[0]}`))));
}

/** Every run, by micro-benchmark. */
export function rail(key: string, runs: Plain[], current = ""): HTMLElement {
  const groups = new Map<string, Plain[]>();
  for (const run of runs) groups.set(run.title, [...(groups.get(run.title) ?? []), run]);
  return h("div", { class: "rail" }, [...groups].map(([title, some]) =>
    h("details", { open: groups.size === 1 || some.some((run) => run.id === current) }, h("summary", {}, title, h("span", { class: "quiet" }, ` ${some.length}`)),
      h("ul", {}, some.map((run) => h("li", {}, h("a", { href: link("run", [key, run.id]), "aria-current": run.id === current ? "page" : undefined },
        h("span", { class: "dot", vars: { "--hue": hueVariable(run.pattern) } }), `${run.pattern} ${run.varies}`, run.repetition > 1 ? ` (${run.repetition})` : "")))))));
}

