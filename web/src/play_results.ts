// Results of a run on a simulated device drawn over the run before, on the same scales.

import { fetchJson, fetchPicture, type Picture, type Plain } from "./api";
import { color, h, table, type Child } from "./dom";
import { onLeave } from "./cleanup";
import { paint } from "./paint";
import { Plot } from "./plot";
import { HUES, hue } from "./result";
import { link } from "./route";
import { tails } from "./tails";
import { count, duration, linearTicks, logTicks, withSpacing, threeDigits, tickOf } from "./format";

const COLUMNS = 700;
const DASH = [6, 4];

/** Figures and numbers of a run, and of an earlier one. */
export async function runFigures(now: Plain, before: Plain | undefined): Promise<Child> {
  const played = before ? [before, now] : [now];
  return now.benchmark === "pattern" ? runs(played) : benchmarks(played, now.benchmark);
}

/** Colours of the earlier and of the later one. */
function tones(n: number, later: string): string[] {
  return n > 1 ? [color("muted"), later] : [later];
}

async function runs(played: Plain[]): Promise<Child> {
  const views = await Promise.all(played.map(async ({ key }) => fetchJson("run", { key, run: (await fetchJson("result", { key })).runs[0].id })));
  const pictures = await Promise.all(views.map((run, i) => fetchPicture({ key: played[i]!.key, run: run.id, axis: "number", from: 0, to: run.io_count, columns: COLUMNS })));
  const spreads = await Promise.all(views.map((run, i) => fetchJson("spread", { key: played[i]!.key, runs: run.id })));
  const looks = tones(played.length, hue(views.at(-1)!.pattern));
  const words = played.length > 1 ? ["before", "now"] : ["now"];
  return h("div", {},
    h("ul", { class: "legend" }, words.map((each, i) => h("li", { vars: { "--hue": looks[i]! } }, `${each}: `, h("code", {}, played[i]!.url)))),
    over(views, pictures, looks),
    tails("play", spreads.map((spread, i) => ({ words: words[i]!, hue: looks[i]!, dash: i < played.length - 1 ? DASH : [], spread }))),
    numbers(views, played));
}

/** Response times over the number of the I/O. */
function over(views: Plain[], pictures: Picture[], looks: string[]): HTMLElement {
  const least = Math.min(...pictures.map((each) => each.window.min_ns || 1000));
  const most = Math.max(...pictures.map((each) => each.window.max_ns || 1e6));
  const last = Math.max(...pictures.map((each) => each.io_count), 1);
  const plot = new Plot({
    title: "Response times, before and now", name: "play", height: 320,
    x: { range: { low: 0, high: last }, label: "number of the I/O", ticks: (low, high, about) => linearTicks(low, high, about).filter(Number.isInteger), tick: (low, high) => tickOf("number", low, high) },
    y: { range: { low: least / 1.5, high: most * 1.5 }, log: true, label: "response time", ticks: (low, high) => logTicks(low, high), tick: () => duration },
    paint: (pen, plane) => pictures.forEach((picture, i) => paint(pen, plane, picture, "number", { startup: 0, period: 0, hue: looks[i]!, mean: looks[i]!, selected: null }, views[i]!.edges_ns, () => looks[i]!)),
  });
  plot.over.parentElement!.classList.add("every");
  onLeave(() => plot.remove());
  return h("div", {}, plot.node, h("p", { class: "quiet" }, "Dots or columns: I/Os; lines: the running mean."), plot.saving());
}

type Row = [string, (run: Plain) => number | null | undefined, (value: number) => string];
const ROWS: Row[] = [
  ["mean", (run) => run.statistics?.mean_ns, duration], ["p50", (run) => run.statistics?.p50_ns, duration], ["p99", (run) => run.statistics?.p99_ns, duration],
  ["max", (run) => run.statistics?.max_ns, duration], ["IOPS", (run) => run.ios_per_s, threeDigits],
  ["write amplification", (run) => run.write_amplification, (value) => value.toFixed(2)],
];

function numbers(views: Plain[], played: Plain[]): HTMLElement {
  const counters = [...new Set(views.flatMap((run) => Object.keys(run.counters)))].filter((name) => views.some((run) => run.counters[name]));
  const spent = [...new Set(views.flatMap((run) => run.spent_ns.map((each: Plain) => each.words)))];
  const modes = [...new Set(views.flatMap((run) => Object.keys(run.by_mode)))];
  const rows: Row[] = [...ROWS,
    ...modes.flatMap((mode): Row[] => [
      [`${mode}: IOPS`, (run) => run.by_mode[mode]?.ios_per_s, threeDigits],
      [`${mode}: mean`, (run) => run.by_mode[mode]?.statistics.mean_ns, duration],
      [`${mode}: p99`, (run) => run.by_mode[mode]?.statistics.p99_ns, duration]]),
    ...spent.map((name): Row => [`time per I/O: ${name}`, (run) => run.spent_ns.find((each: Plain) => each.words === name)?.ns ?? 0, duration]),
    ...counters.map((name): Row => [name, (run) => run.counters[name] ?? 0, count])];
  const cells = rows.map(([name, of, words]): Child[] => {
    const values = views.map(of);
    const [one, other] = values;
    const ratio = views.length > 1 && one && other ? `×${threeDigits(other / one)}` : "";
    return [name, ...values.map((value) => (value === null || value === undefined ? "–" : words(value))), ...(views.length > 1 ? [ratio] : [])];
  }).filter((row) => row.slice(1).some((cell) => cell !== "–" && cell !== "0" && cell !== ""));
  const head = views.length > 1 ? ["", "before", "now", "now over before"] : ["", "now"];
  return h("div", {}, h("h2", {}, "In numbers"), table(head, cells, "Response times and device counters", 1),
    h("p", {}, "Every I/O and its causes: ", views.map((run, i) => [h("a", { href: link("run", [played[i]!.key, run.id]) }, views.length > 1 && !i ? "before" : "now"), " "])));
}

async function benchmarks(played: Plain[], name: string): Promise<Child> {
  const results = await Promise.all(played.map(({ key }) => fetchJson("result", { key })));
  const measured: Plain[] = results.map((each) => each.benchmarks.find((one: Plain) => one.name === name) ?? { patterns: [], values: [], axis: "" });
  const points = measured.flatMap((each) => each.patterns.flatMap((one: Plain) => one.points));
  if (!points.length) return h("p", {}, "Nothing was measured.");
  const means = points.map((each: Plain) => each.statistics.mean_ns);
  const range = { low: Math.min(...means) / 1.6, high: Math.max(...means) * 1.6 };
  const ticks = [...new Map(measured.flatMap((each) => each.values).map((each: Plain) => [each.at, each.label]))].sort((a, b) => a[0] - b[0]) as [number, string][];
  const [left, right] = [ticks[0]![0], ticks.at(-1)![0]];
  const margin = Math.max((right - left) * 0.05, 0.4);
  const last = measured.at(-1)!;
  const plot = new Plot({
    title: `${last.title}, before and now`, name: `play-${name}`, height: 360,
    x: { range: { low: left - margin, high: right + margin }, label: last.axis, ticks: (low, high, about) => withSpacing(ticks.map(([at]) => at), (high - low) / (about * 1.6)), tick: () => (value) => ticks.find(([at]) => at === value)?.[1] ?? "" },
    y: { range, log: true, label: "mean response time", ticks: (low, high) => logTicks(low, high), tick: () => duration },
    paint: (pen, plane) => measured.forEach((each, i) => {
      const old = i < measured.length - 1;
      for (const { pattern, points } of each.patterns) {
        pen.line(points.map((one: Plain) => [plane.x(one.at), plane.y(one.statistics.mean_ns)]), hue(pattern), old ? 1.3 : 2, old ? DASH : []);
        if (!old) for (const one of points) pen.dot(plane.x(one.at), plane.y(one.statistics.mean_ns), 3, hue(pattern));
      }
    }),
  });
  onLeave(() => plot.remove());
  return h("div", {},
    h("ul", { class: "legend" }, last.patterns.map((each: Plain) => h("li", { vars: { "--hue": `var(--${HUES[each.pattern] ?? "ink"})` } }, `${each.pattern} ${each.words}`)),
      h("li", { class: "stroke" }, "now: ", h("code", {}, played.at(-1)!.url)), played.length > 1 ? h("li", { class: "stroke dashed" }, "before: ", h("code", {}, played[0]!.url)) : null),
    plot.node, plot.saving(),
    h("p", {}, last.finding),
    compared(measured, played),
    h("p", {}, "The whole results: ", played.map((each, i) => [h("a", { href: link("result", [each.key]) }, played.length > 1 && !i ? "before" : "now"), " "]),
      played.length > 1 ? h("a", { href: link("compare", [played.map((each) => each.key).join(",")]) }, "both, compared with intervals") : null));
}

function compared(measured: Plain[], played: Plain[]): HTMLElement {
  const key = (pattern: string, point: Plain) => `${pattern} ${point.label}`;
  const all = measured.map((each) => new Map<string, number>(each.patterns.flatMap((one: Plain) => one.points.map((point: Plain) => [key(one.pattern, point), point.statistics.mean_ns]))));
  const names = [...new Set(all.flatMap((each) => [...each.keys()]))];
  const rows = names.map((name): Child[] => {
    const [one, other] = all.map((each) => each.get(name));
    return [name, ...all.map((each) => duration(each.get(name))), ...(played.length > 1 ? [one && other ? `×${threeDigits(other / one)}` : "–"] : [])];
  });
  return h("details", {}, h("summary", {}, "Numbers"), table(played.length > 1 ? ["", "before", "now", "now over before"] : ["", "now"], rows, "Mean response times"));
}
