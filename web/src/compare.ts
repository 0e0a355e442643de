// Compared results: their properties, and the experiments that differ, the largest difference first.

import type { ComparedPair, ComparedResult, ComparedRow, ResultView, Spread } from "./api_types";
import { fetchJson } from "./api";
import { color, errorNotice, facts, fill, h, table, type Child } from "./dom";
import type { Pen } from "./pen";
import { mark, SHAPES } from "./markers";
import { distinctColour } from "./paint";
import { Plot, type Plane, type Range } from "./plot";
import { link, updateQuery, type Route } from "./route";
import { saveCsv } from "./save";
import { tails } from "./distribution";
import { count, duration, logTicks, withSpacing, threeDigits, dateText, tickDuration } from "./format";

const WORDS: Record<string, string> = { slower: "slower", faster: "faster", same: "the same", not_apart: "not apart", unknown: "unknown" };
const REASONS: Record<string, string> = { no_interval: "no interval", one_repetition: "one repetition", inside_startup: "inside the start-up", different_window: "different window" };
const BASELINES = ["SR", "RR", "SW", "RW"];
const HUE: Record<string, string> = { slower: "rw", faster: "sr", same: "muted", not_apart: "muted", unknown: "muted" };

/** The reason for a missing verdict, in words. */
function reasonOf(row: ComparedRow): string {
  return REASONS[row.unknown_because ?? ""] ?? row.unknown_because ?? "";
}

/** The number of rows of each reason for a missing verdict, in brackets; empty without any. */
function reasonCounts(rows: ComparedRow[]): string {
  const counts = new Map<string, number>();
  for (const row of rows) if (row.unknown_because) counts.set(reasonOf(row), (counts.get(reasonOf(row)) ?? 0) + 1);
  return counts.size ? ` (${[...counts].map(([reason, n]) => `${count(n)} ${reason}`).join(", ")})` : "";
}

export async function show(main: HTMLElement, route: Route): Promise<void> {
  const keys = route.parts[0] ?? "";
  const response = await fetchJson("compare", { keys });
  const [first, ...others] = response.results;
  fill(main,
    h("nav", { class: "crumbs", "aria-label": "Place" }, h("a", { href: link("results", [], { chosen: keys }) }, "Results"), " › ", h("span", { "aria-current": "page" }, "Comparison")),
    h("h1", {}, "Comparison"),
    h("div", { class: "compared" }, table(["Result", ...response.columns], response.results.map((each): Child[] => [
      [h("a", { href: link("result", [each.key]) }, breakable(each.name)), h("span", { class: "quiet" }, `${each.device}, ${dateText(each.created_utc)}; ${each.scale}, ${each.state}, ${each.durability}`)],
      ...(each.cells?.map(withoutInterval) ?? response.columns.map(() => "–")),
    ]), "Compared results; the first is the reference")),
    sideBySide(response.results, response.comparisons),
    response.comparisons.map((each, i) => comparisonSection(first!, others[i]!, each, route, i)));
}

/** A path that may be divided after a slash. */
const breakable = (name: string) => name.replaceAll("/", "/\u200b");

/** A characteristic without the interval of its time, which is in the tooltip. */
function withoutInterval(text: string): Child {
  const [short, interval] = text.split(" (");
  return interval?.includes(" to ") ? h("span", { title: text }, short) : text;
}

interface Series { axis: string; labels: Map<number, string>; means: Map<number, number>[] }

/** A row for each micro-benchmark, with a panel for each pattern with several values, and in it a line for each result. */
function sideBySide(results: ComparedResult[], pairs: ComparedPair[]): HTMLElement | null {
  const benchmarks = new Map<string, Map<string, Series>>();
  pairs.forEach((pair, i) => {
    for (const row of pair.rows) {
      if (row.value === null) continue;
      const panels = benchmarks.get(row.title) ?? new Map<string, Series>();
      benchmarks.set(row.title, panels);
      const series: Series = panels.get(row.pattern) ?? { axis: row.axis_words, labels: new Map(), means: results.map(() => new Map()) };
      panels.set(row.pattern, series);
      series.labels.set(row.value, row.label);
      series.means[0]!.set(row.value, row.first_ns);
      series.means[i + 1]!.set(row.value, row.second_ns);
    }
  });
  const place = (pattern: string) => (BASELINES.includes(pattern) ? BASELINES.indexOf(pattern) : BASELINES.length);
  const drawn = [...benchmarks].map(([title, panels]) => [title, [...panels].filter(([, { labels }]) => labels.size > 1).sort(([one], [other]) => place(one) - place(other))] as const).filter(([, panels]) => panels.length);
  if (!drawn.length) return null;
  return h("section", {},
    h("h2", {}, "All results"),
    h("ul", { class: "legend" }, results.map(({ name }, i) => h("li", { class: "shape", vars: { "--hue": distinctColour(i) }, "data-shape": SHAPES[i % SHAPES.length] }, name))),
    drawn.map(([title, panels]) => [h("h3", {}, title), h("div", { class: "multiples small" }, panels.map(([pattern, series]) => panel(`${title}, ${pattern}`, pattern, series)))]));
}

/** Mean response times of several results over the values of a parameter. */
function panel(title: string, pattern: string, { axis, labels, means }: Series): HTMLElement {
  const values = [...labels.keys()].sort((one, other) => one - other);
  // Powers of two are equidistant; values that have no logarithm are to the left of them.
  const positive = values.filter((value) => value > 0);
  const position = (value: number) => (value > 0 ? Math.log2(value) : Math.log2(positive[0] ?? 1) - values.filter((each) => each <= 0).length + values.indexOf(value));
  const positions = values.map(position);
  const margin = Math.max((positions.at(-1)! - positions[0]!) * 0.05, 0.4);
  const every = means.flatMap((each) => [...each.values()]);
  const plot = new Plot({
    title, name: title, height: 190,
    x: { range: { low: positions[0]! - margin, high: positions.at(-1)! + margin }, label: axis, ticks: (low, high, about) => withSpacing(positions, (high - low) / (about * 1.6)), tick: () => (at) => labels.get(values[positions.indexOf(at)]!) ?? "" },
    y: { range: { low: Math.min(...every) / 1.6, high: Math.max(...every) * 1.6 }, log: true, label: "mean response time", ticks: logTicks, tick: () => tickDuration },
    paint: (pen, plane) => means.forEach((each, i) => {
      const points = [...each].sort(([one], [other]) => one - other).map(([value, mean]): [number, number] => [plane.x(position(value)), plane.y(mean)]);
      pen.line(points, distinctColour(i), 1.5);
      for (const [x, y] of points) mark(pen, SHAPES[i % SHAPES.length]!, x, y, 3.5, distinctColour(i));
    }),
  });
  return h("article", {}, h("div", { class: "bar" }, h("h4", {}, pattern), plot.saving()), plot.node);
}

function comparisonSection(first: ComparedResult, second: ComparedResult, each: ComparedPair, route: Route, index: number): HTMLElement {
  const verdicts: Record<string, number> = each.verdicts;
  const unknown = verdicts.unknown ?? 0;
  // Ignore unknown verdicts in the URL.
  const requested = route.query.verdict ?? "";
  let verdict = Object.hasOwn(verdicts, requested) ? requested : "";
  const rows = [...each.rows].sort((one, other) => Math.abs(Math.log(other.ratio)) - Math.abs(Math.log(one.ratio)));
  const host = h("div");
  const shown = () => rows.filter((row) => !verdict || row.verdict === verdict);
  const draw = () => fill(host, forest(first, second, shown(), index), experimentTable(first, second, shown()));
  const choose = h("select", { onchange: () => {
    verdict = choose.value;
    updateQuery({ verdict });
    draw();
  } }, h("option", { value: "" }, `all ${rows.length}`), Object.entries(verdicts).map(([name, n]) => h("option", { value: name }, `${WORDS[name] ?? name}: ${n}`)));
  choose.value = verdict;
  if (rows.length) draw();
  return h("section", {},
    h("h2", {}, `${second.name} against ${first.name}`),
    h("p", { class: "abstract" }, !rows.length ? `${first.name} and ${second.name} have no experiment in common.`
      : unknown === rows.length ? `No verdict about ${count(unknown)} experiments${reasonCounts(rows)}: the differences below are those of these runs.`
      : `${second.name} is faster in ${count(verdicts.faster ?? 0)} of ${count(rows.length)} experiments, slower in ${count(verdicts.slower ?? 0)}, the same in ${count(verdicts.same ?? 0)}; ${count(verdicts.not_apart ?? 0)} inconclusive${unknown ? `, ${count(unknown)} unknown${reasonCounts(rows)}` : ""}.`),
    each.differences.length ? h("ul", {}, each.differences.map((sentence) => h("li", {}, sentence))) : null,
    each.conditions.length ? h("details", { class: "notice", open: true }, h("summary", {}, `${each.conditions.length} ${each.conditions.length === 1 ? "warning" : "warnings"}`), each.conditions.map((each) => h("div", { class: "warning" }, h("p", {}, h("b", {}, each.message)), h("p", { class: "quiet" }, each.advice)))) : null,
    Object.keys(each.devices).length ? h("details", {}, h("summary", {}, `The devices differ in ${Object.keys(each.devices).length} properties`), facts(Object.entries(each.devices as Record<string, string[]>).map(([name, [one, other]]) => [name, `${one} → ${other}`]))) : null,
    rows.length ? [h("div", { class: "bar" }, h("label", {}, "Show ", choose)), host] : null,
    each.only_in_first.length || each.only_in_second.length ? h("p", { class: "quiet" }, `Only in the first: ${each.only_in_first.length}; only in the second: ${each.only_in_second.length}.`) : null);
}

const MAX_ROWS = 40;

/** Ticks to both sides of ×1, whose names fit beside each other. */
function aroundOne(low: number, high: number, about: number): number[] {
  const ticks = logTicks(2 ** low, 2 ** high).map(Math.log2);
  const from = (side: number[]) => withSpacing([0, ...side.filter((at) => at > 0)], (high - low) / (about * 1.6));
  const below = from(ticks.map((at) => -at).reverse()).map((at) => -at).reverse();
  return [...below, ...from(ticks).slice(1)];
}

/** The interval of a ratio, if it has one. A lower bound that is not above 0 becomes 0, since ratios are positive. */
function interval(row: ComparedRow): Range | null {
  return row.high === null ? null : { low: Math.max(row.low ?? 0, 0), high: row.high };
}

/** An interval on a logarithmic axis, which has no 0: an arrow marks an interval that reaches it. */
function spanned(pen: Pen, plane: Plane, { low, high }: Range, y: number, tip: number, hue: string): void {
  const from = low > 0 ? plane.x(Math.log2(low)) : plane.left;
  pen.line([[from, y], [plane.x(Math.log2(high)), y]], hue, 2);
  if (low <= 0) pen.line([[from + tip, y - tip], [from, y], [from + tip, y + tip]], hue, 2);
}

/** Ratios with their intervals on a logarithmic axis, a row each. */
function forest(first: ComparedResult, second: ComparedResult, rows: ComparedRow[], index: number): HTMLElement | null {
  const largest = rows.slice(0, MAX_ROWS);
  if (!largest.length) return null;
  const ends = largest.flatMap((row) => [row.ratio, row.low ?? row.ratio, row.high ?? row.ratio]).filter((value) => value > 0);
  const range = { low: Math.min(0.8, ...ends) / 1.1, high: Math.max(1.25, ...ends) * 1.1 };
  const log = { low: Math.log2(range.low), high: Math.log2(range.high) };
  const name = (row: ComparedRow) => `${row.title} ${row.pattern} ${row.label}`;
  const plot = new Plot({
    title: `${second.name} over ${first.name}`, name: `comparison-${index + 1}`, height: 70 + 18 * largest.length,
    x: { range: log, label: "second over first (95 % interval)", ticks: aroundOne, tick: () => (value) => `×${threeDigits(2 ** value)}` },
    y: { range: { low: -largest.length + 0.4, high: 0.6 }, label: "", size: 12 + 6 * Math.max(...largest.map((row) => name(row).length)), ticks: () => largest.map((_, i) => -i), tick: () => (value) => name(largest[-value]!) },
    paint: (pen, plane) => {
      pen.rect(plane.x(Math.log2(1 / 1.05)), plane.top, plane.x(Math.log2(1.05)) - plane.x(Math.log2(1 / 1.05)), plane.height, color("shade"));
      pen.line([[plane.x(0), plane.top], [plane.x(0), plane.top + plane.height]], color("muted"), 1);
      largest.forEach((row, i) => {
        const hue = color(HUE[row.verdict] ?? "muted");
        const bounds = interval(row);
        if (bounds) spanned(pen, plane, bounds, plane.y(-i), (plane.y(-1) - plane.y(0)) / 4, hue);
        pen.dot(plane.x(Math.log2(row.ratio)), plane.y(-i), 3.5, hue);
      });
    },
  });
  return h("div", {}, h("p", { class: "quiet" }, `The ${largest.length} largest differences; shaded: within 5 %, grey: neither slower nor faster. Right of the line the second is slower.${largest.some((row) => interval(row)?.low === 0) ? " An arrow: the interval begins at 0." : ""}`), plot.node, plot.saving());
}

function spanWords(bounds: Range | null): string {
  return bounds ? `${bounds.low > 0 ? `×${threeDigits(bounds.low)}` : "0"} – ×${threeDigits(bounds.high)}` : "–";
}

function experimentTable(first: ComparedResult, second: ComparedResult, rows: ComparedRow[]): HTMLElement {
  const over = h("section", { "aria-label": "Overlay", hidden: true });
  return h("details", { open: rows.length <= MAX_ROWS }, h("summary", {}, `Each of the ${count(rows.length)} experiments`), over,
    h("p", { class: "quiet" }, "Click an experiment to lay both distributions over each other."),
    h("div", { class: "compared rows" }, table(["Experiment", breakable(first.name), breakable(second.name), "ratio", "verdict", "interval", "p50", "p99"], rows.map((row): Child[] => [
      h("button", { type: "button", class: "link", "aria-label": `Overlay ${row.title} ${row.pattern} ${row.label}`, onclick: () => void overlay(over, first, second, row) }, `${row.title} ${row.pattern} ${row.label}`),
      duration(row.first_ns), duration(row.second_ns), `×${threeDigits(row.ratio)}`,
      h("span", { class: `verdict ${row.verdict}` }, WORDS[row.verdict] ?? row.verdict, row.unknown_because ? `: ${reasonOf(row)}` : ""),
      spanWords(interval(row)), row.p50_ratio === null ? "–" : `×${threeDigits(row.p50_ratio)}`, row.p99_ratio === null ? "–" : `×${threeDigits(row.p99_ratio)}`,
    ]), "Mean response times, the largest difference first")),
    h("span", { class: "buttons" }, h("button", { type: "button", onclick: () => saveCsv("comparison", ["micro_benchmark", "pattern", "parameter", "value", "first_ns", "second_ns", "ratio", "low", "high", "verdict", "p50_ratio", "p99_ratio", "unknown_because"], rows.map((row) => [row.micro_benchmark, row.pattern, row.parameter, row.value, row.first_ns, row.second_ns, row.ratio, row.low, row.high, row.verdict, row.p50_ratio, row.p99_ratio, row.unknown_because])) }, "Save CSV")));
}

/** The distributions of one experiment of both results in the same axes. */
async function overlay(node: HTMLElement, first: ComparedResult, second: ComparedResult, row: ComparedRow): Promise<void> {
  node.hidden = false;
  fill(node, h("p", { class: "quiet" }, "Loading …"));
  try {
    const distributions = await Promise.all([first, second].map(async ({ key, name }): Promise<{ key: string; name: string; run: string; spread: Spread }> => {
      const runs = runsOf(await fetchJson("result", { key }), row);
      return { key, name, run: runs[0]!, spread: await fetchJson("spread", { key, runs: runs.join(",") }) };
    }));
    const looks = [color("muted"), color("rw")];
    fill(node, h("h3", {}, `${row.title}: ${row.pattern} ${row.axis} ${row.label}`),
      h("ul", { class: "legend" }, distributions.map(({ key, name, run, spread }, i) => h("li", { vars: { "--hue": looks[i]! } }, h("a", { href: link("run", [key, run]) }, name), `: ${count(spread.count)} I/Os of ${count(spread.runs)} ${spread.runs === 1 ? "run" : "runs"}`))),
      tails("comparison", distributions.map(({ name, spread }, i) => ({ words: name, hue: looks[i]!, dash: i ? [] : [6, 4], spread }))));
    node.scrollIntoView({ block: "nearest" });
  } catch (error) {
    fill(node, errorNotice(error));
  }
}

/** The runs of an experiment. */
function runsOf(result: ResultView, row: ComparedRow): string[] {
  const matches = result.benchmarks.filter((each) => each.name === row.micro_benchmark);
  const points = matches.length ? matches.flatMap((each) => [...each.patterns.flatMap((one) => one.points), ...each.others]) : result.baselines;
  return points.find((each) => each.pattern === row.pattern && (!matches.length || (each.value === row.value && each.parameter === row.parameter)))?.runs ?? [];
}
