// A result: its key figures, its row of Table 3, its micro-benchmarks as small multiples, its
// warnings. Every number links to its runs.

import type { ExperimentPoint, ExperimentView, MicroBenchmarkView, NamedRun, Pattern, ResultView, WarningView } from "./api_types";
import { fetchJson } from "./api";
import * as channel from "./channel";
import { color, facts, fill, h, table, type Child } from "./dom";
import { mark, shapeOf, whisker } from "./markers";
import { distinctColour } from "./paint";
import { Plot, type Scale } from "./plot";
import { rounds } from "./rounds";
import { link, type Route } from "./route";
import { saveCsv } from "./save";
import { count, duration, logTicks, ms, percent, withSpacing, dateText, tickDuration } from "./format";

export const HUES: Record<string, string> = { SR: "sr", RR: "rr", SW: "sw", RW: "rw" };

/** Number of columns of Table 3 that the tiles show as well. */
const BASELINES = 4;

export function hue(pattern: string): string {
  return color(HUES[pattern] ?? "ink");
}

export async function show(main: HTMLElement, route: Route): Promise<void> {
  const key = route.parts[0] ?? "";
  const result = await fetchJson("result", { key });
  const shared = extent(result);
  fill(main,
    h("nav", { class: "crumbs", "aria-label": "Place" }, h("a", { href: "#/results" }, "Results"), " › ", h("span", { "aria-current": "page" }, result.name)),
    h("h1", {}, result.device, result.simulated ? h("span", { class: "badge" }, "simulated") : null),
    result.headline ? h("p", { class: "abstract" }, result.headline) : null,
    result.baselines.length ? h("section", { class: "tiles", "aria-label": "Baselines" }, result.baselines.map((each) => tile(key, each))) : null,
    warningNotice(key, result.warnings, "these numbers"),
    provenance(result),
    result.inside ? h("p", {}, h("a", { class: "more", href: link("inside", [key]) }, "What is inside this device →")) : null,
    result.drive.length ? h("section", {}, h("h2", {}, "Counters of the drive"), facts(result.drive.map(({ label, text }) => [label, text]))) : null,
    result.cells?.slice(BASELINES).some((cell) => cell !== "–") ? h("section", {}, h("h2", {}, "Key characteristics"), h("p", {}, result.characteristics.join(" ")),
      table(result.columns, [result.cells], "As a row of uFLIP's Table 3", 0),
      h("details", {}, h("summary", {}, "How to read it"), h("p", { class: "quiet" }, result.note))) : null,
    result.advice ? h("section", { class: "hints" }, h("h2", {}, "Design hints"), h("p", {}, result.advice.class),
      table(["Hint", "Statement", "Evidence", "Advice"], result.advice.hints.map((hint): Child[] => [
        h("span", { class: `hint ${hint.verdict.split(" ")[0]}` }, `${hint.number} ${hint.verdict}`), hint.statement, hint.because, hint.advice || "–",
      ]), "uFLIP's seven hints (§5.3) for this device", 4)) : null,
    result.is_open_channel ? await channel.show(key) : null,
    h("h2", {}, "Micro-benchmarks"),
    h("p", { class: "quiet" }, "Mean response time on one logarithmic scale, with the interval in which the mean lies; dotted: the baselines. Click a point to see its run."),
    h("div", { class: "multiples" }, result.benchmarks.map((each) => multiple(key, result, each, shared))),
    h("h2", {}, "All runs"),
    rail(key, result.runs),
  );
}

function tile(key: string, run: ExperimentView): HTMLElement {
  const statistics = run.statistics;
  if (!statistics) return h("div", { class: "tile" }, h("h2", {}, run.pattern));
  const tail: [string, number] = statistics.p99_ns !== null ? ["p99", statistics.p99_ns] : statistics.p95_ns !== null ? ["p95", statistics.p95_ns] : ["max", statistics.max_ns];
  return h("a", { class: "tile", href: link("run", [key, run.runs[0]!]), vars: { "--hue": `var(--${HUES[run.pattern] ?? "ink"})` } },
    h("h2", {}, run.pattern, " ", h("span", {}, run.words)),
    h("p", { class: "big" }, duration(statistics.mean_ns)),
    h("p", { class: "interval" }, run.half_width_ns === null ? "no interval" : `± ${duration(run.half_width_ns)}`, run.converged === false ? h("span", { class: "badge" }, "not converged") : null),
    facts([["p50", duration(statistics.p50_ns)], [tail[0], duration(tail[1])], ["I/Os", count(statistics.count)]]));
}

/** Origin and conditions of a result. */
export function provenance(result: ResultView): HTMLElement {
  return facts([
    ["measured (UTC)", dateText(result.created_utc)], ["scale", result.scale], ["state", result.state],
    ["durability", h("span", { title: result.durability_means }, result.durability)],
    ["runs", `${count(result.finished)} of ${count(result.planned)}${result.status === "complete" ? "" : `, ${result.status}`}`],
    ["converged means", result.experiments ? `${result.known} of ${result.experiments} (${percent(result.known / result.experiments)})` : ""],
    ["uflip", result.uflip_version],
  ]);
}

/** Warnings in one line; opened, with their advice and their runs. */
export function warningNotice(key: string, warnings: WarningView[], about: string): HTMLElement | null {
  if (!warnings.length) return null;
  return h("details", { class: "notice warnings" },
    h("summary", {}, h("b", {}, `${warnings.length} ${warnings.length === 1 ? "warning" : "warnings"}`), ` about ${about}: ${warnings.map((each) => each.code.replaceAll("_", " ")).join(", ")}`),
    warnings.map((each) => h("div", { class: "warning" },
      h("p", {}, h("b", {}, each.message), " ", h("code", {}, each.code)),
      h("p", { class: "quiet" }, each.advice),
      each.runs.length ? h("p", {}, each.runs.length === 1 ? "Run: " : "Runs: ", each.runs.slice(0, 12).map((run: string) => [h("a", { href: link("run", [key, run]) }, run), " "]), each.runs.length > 12 ? `and ${each.runs.length - 12} more` : "") : null)));
}

interface Point { at: number; mean: number; low: number; high: number; pattern: string; of: ExperimentPoint }

export function extent(result: ResultView): { low: number; high: number } {
  let [low, high] = [Infinity, 0];
  for (const benchmark of result.benchmarks)
    for (const { points } of benchmark.patterns)
      for (const point of points) {
        low = Math.min(low, point.statistics!.mean_ns);
        high = Math.max(high, point.statistics!.mean_ns);
      }
  return high > 0 ? { low: low / 1.6, high: high * 1.6 } : { low: 1, high: 10 };
}

/** The colour of each pattern of a figure: each basic pattern has its own, mixes get others. */
function huesOf(patterns: Pattern[]): (pattern: string) => string {
  const others = patterns.map((each) => each.pattern).filter((each: string) => !HUES[each]);
  return (pattern) => (HUES[pattern] ? hue(pattern) : distinctColour(others.indexOf(pattern)));
}

export function multiple(key: string, result: ResultView, benchmark: MicroBenchmarkView, range: { low: number; high: number }): HTMLElement {
  const patterns = benchmark.patterns;
  const tone = huesOf(patterns);
  const shape = (pattern: string) => shapeOf(pattern, patterns.findIndex((each) => each.pattern === pattern));
  const title = titleOf(result, benchmark);
  const points: Point[] = patterns.flatMap(({ pattern, points }) => points.map((of): Point => {
    const half = of.half_width_ns ?? 0;
    const mean = of.statistics!.mean_ns;
    return { at: of.at, mean, low: Math.max(mean - half, mean / 1e3), high: mean + half, pattern, of };
  }));
  const positions: number[] = benchmark.values.map((each) => each.at);
  if (!points.length) return h("article", {}, h("h3", {}, title), others(key, benchmark));
  const margin = Math.max((Math.max(...positions) - Math.min(...positions)) * 0.05, 0.4);
  const x: Scale = {
    range: { low: Math.min(...positions) - margin, high: Math.max(...positions) + margin }, label: benchmark.axis,
    ticks: (low, high, about) => withSpacing(positions, (high - low) / (about * 1.6)), tick: () => (value) => benchmark.values.find((each) => each.at === value)?.label ?? "",
  };
  const y: Scale = { range, log: true, label: "mean response time", ticks: logTicks, tick: () => tickDuration };
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const nearest = (at: number, value: number, plane: { x(v: number): number; y(v: number): number }): Point | undefined => {
    const far = (point: Point) => Math.hypot(plane.x(point.at) - plane.x(at), plane.y(point.mean) - plane.y(value));
    const best = points.reduce((one, other) => (far(other) < far(one) ? other : one));
    return far(best) < 24 ? best : undefined;
  };
  const idle = () => fill(readout, benchmark.finding);
  const plot = new Plot({
    title: `${title}: ${result.device}`, name: nameOf(result, benchmark), height: 230, x, y,
    paint: (pen, plane) => {
      for (const [pattern, level] of Object.entries(benchmark.levels_ms as Record<string, number | null>))
        if (level && patterns.some((each) => each.pattern === pattern))
          pen.line([[plane.left, plane.y(level * 1e6)], [plane.left + plane.width, plane.y(level * 1e6)]], tone(pattern), 1, [1, 4]);
      for (const { pattern } of patterns) {
        const own = points.filter((each) => each.pattern === pattern);
        for (const each of own) if (each.high > each.low) whisker(pen, plane.x(each.at), plane.y(each.low), plane.y(each.high), tone(pattern));
        pen.line(own.map((each) => [plane.x(each.at), plane.y(each.mean)]), tone(pattern), 1.5);
        for (const each of own) mark(pen, shape(pattern), plane.x(each.at), plane.y(each.mean), 3.5, tone(pattern));
      }
    },
    at: (at, value, plane) => {
      const point = at === null ? undefined : nearest(at, value, plane);
      plot.over.style.cursor = point ? "pointer" : "default";
      if (point) fill(readout, h("b", {}, `${point.pattern} ${point.of.label}`), `: ${duration(point.mean)} ± ${duration(point.of.half_width_ns)}, p99 ${duration(point.of.statistics!.p99_ns)}${point.of.converged === false ? ", not converged" : ""}`);
      else idle();
    },
    clicked: (at, value, plane) => {
      const point = nearest(at, value, plane);
      if (point) location.hash = link("run", [key, point.of.runs[0]!]);
    },
  });
  idle();
  const written = rounds(key, nameOf(result, benchmark), title, patterns);
  return h("article", { class: written ? "wide" : "" },
    h("h3", {}, title),
    h("p", { class: "quiet" }, benchmark.question),
    h("ul", { class: "legend" }, patterns.map(({ pattern, words }) => h("li", { class: "shape", vars: { "--hue": tone(pattern) }, "data-shape": shape(pattern) }, pattern, " ", words))),
    plot.node, readout, written,
    h("details", {}, h("summary", {}, "Numbers, and the run of each"),
      table(["", benchmark.axis, "mean", "±", "p50", "p99", "max [ms]", "run"], points.map(({ pattern, of }): Child[] => [
        pattern, of.label, ms(of.statistics!.mean_ns), ms(of.half_width_ns), ms(of.statistics!.p50_ns), ms(of.statistics!.p99_ns), ms(of.statistics!.max_ns),
        of.runs.map((run: string, i: number) => [h("a", { href: link("run", [key, run]), "aria-label": `Run ${run}` }, i ? `${i + 1}` : "open"), " "]),
      ]), `${title}, response time [ms]`, 2),
      h("p", { class: "quiet" }, benchmark.how_to_read),
      plot.saving([["CSV", () => saveCsv(nameOf(result, benchmark), ["pattern", "value", "mean_ns", "half_width_ns", "converged", "runs"], points.map(({ pattern, mean, of }) => [pattern, of.value, mean, of.half_width_ns, of.converged, of.runs.join(" ")]))]])),
    others(key, benchmark));
}

/** Title of a figure, with its parameter if the micro-benchmark has several figures. */
function titleOf(result: ResultView, { name, title, axis }: MicroBenchmarkView): string {
  return result.benchmarks.filter((each) => each.name === name).length > 1 ? `${title}: ${axis}` : title;
}

function nameOf(result: ResultView, benchmark: MicroBenchmarkView): string {
  return [result.name, benchmark.name, benchmark.parameter ?? ""].join("-");
}

function hueVariable(pattern: string): string {
  return `var(--${HUES[pattern] ?? "ink"})`;
}

function others(key: string, benchmark: MicroBenchmarkView): HTMLElement | null {
  if (!benchmark.others.length) return null;
  return h("ul", {}, benchmark.others.map((each) => h("li", {}, h("a", { href: link("run", [key, each.runs[0]!]) }, `${each.pattern} ${each.runs[0]}`))));
}

/** Every run, by micro-benchmark. */
export function rail(key: string, runs: NamedRun[], current = ""): HTMLElement {
  const groups = new Map<string, NamedRun[]>();
  for (const run of runs) groups.set(run.title, [...(groups.get(run.title) ?? []), run]);
  return h("div", { class: "rail" }, [...groups].map(([title, runs]) =>
    h("details", { open: groups.size === 1 || runs.some((run) => run.id === current) }, h("summary", {}, title, h("span", { class: "quiet" }, ` ${runs.length}`)),
      h("ul", {}, runs.map((run) => h("li", {}, h("a", { href: link("run", [key, run.id]), "aria-current": run.id === current ? "page" : undefined },
        h("span", { class: "dot", vars: { "--hue": hueVariable(run.pattern) } }), `${run.pattern} ${run.varies}`, run.repetition > 1 ? ` (${run.repetition})` : "")))))));
}

