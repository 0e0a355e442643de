// An open-channel device: bands of response times, throughput per LUN, wear of a block, scaling with
// parallelism, and the rules of the unwritten contract.

import type { BlockWear, Luns, ResponseBands, ScalingCurve } from "./api_types";
import { fetchJson } from "./api";
import { color, h, table, type Child } from "./dom";
import { heat } from "./heat";
import { onLeave } from "./route";
import { Plot } from "./plot";
import { saveCsv } from "./save";
import { count, linearTicks, threeDigits, tickNumber } from "./format";

const READ = 0;
const WRITE = 1;

export async function show(key: string): Promise<HTMLElement> {
  const findings = await fetchJson("channel", { key });
  return h("section", { "aria-label": "Open channel" },
    findings.bands.length ? bands("A single LUN", "Every dot is an I/O of one page of all planes, by one thread; the letters are the mix. Bands are low and high pages, and reads that waited for a write.", findings.bands) : null,
    findings.luns ? luns(findings.luns) : null,
    findings.wear ? wear(findings.wear) : null,
    findings.scaling.length ? scaling(findings.scaling) : null,
    findings.shares.length ? bands("Writers beside readers", "With a thread for every LUN; the share of threads that write.", findings.shares) : null,
    findings.rules.length ? h("section", { class: "hints" }, h("h2", {}, "The unwritten contract"), table(["Rule", "", "Statement", "Evidence"], findings.rules.map((rule): Child[] => [rule.name, h("b", {}, rule.verdict), rule.says, rule.evidence]), "Rules for this device", 4)) : null);
}

function removedOnLeave(plot: Plot): Plot {
  onLeave(() => plot.remove());
  return plot;
}

function bands(title: string, words: string, mixes: ResponseBands[]): HTMLElement {
  const top = Math.max(...mixes.map((mix) => mix.top_ms)) * 1.08;
  const figure = (mix: ResponseBands) => {
    const plot = removedOnLeave(new Plot({
      title: `${title}: ${mix.mix}`, name: `bands-${mix.mix}`, height: 240,
      x: { range: { low: 0, high: Math.max(mix.ios, 1) }, label: "number of the I/O", ticks: (low, high, about) => linearTicks(low, high, about).filter(Number.isInteger), tick: () => count },
      y: { range: { low: 0, high: top }, label: "response time [ms]", ticks: linearTicks, tick: () => tickNumber },
      paint: (pen, plane) => {
        for (const [op, hue] of [[WRITE, color("sw")], [READ, color("rr")]] as [number, string][])
          for (let i = 0; i < mix.at.length; i++) if (mix.op[i] === op && mix.ms[i]! <= top) pen.dot(plane.x(mix.at[i]!), plane.y(mix.ms[i]!), 1.1, hue);
      },
    }));
    return h("article", {}, h("h3", {}, mix.mix), h("p", { class: "quiet" }, `${threeDigits(mix.mb_per_s)} MB/s`), plot.node,
      plot.saving([["CSV", () => saveCsv(`bands-${mix.mix}`, ["number", "operation", "response_time_ms"], mix.at.map((at: number, i: number) => [at, mix.op[i] === READ ? "read" : "write", mix.ms[i]]))]]));
  };
  return h("section", {}, h("h2", {}, title), h("p", { class: "quiet" }, words),
    h("ul", { class: "legend" }, h("li", { vars: { "--hue": "var(--sw)" } }, "writes"), h("li", { vars: { "--hue": "var(--rr)" } }, "reads")),
    h("div", { class: "multiples" }, mixes.map(figure)));
}

function luns(findings: Luns): HTMLElement {
  // The scale starts at zero: a scale around the mean would exaggerate noise.
  const high = 2.2 * Math.max(...findings.write_mb_per_s.flat(), ...findings.read_mb_per_s.flat());
  const figure = (title: string, values: number[][]) => {
    const map = heat({
      title, name: title.toLowerCase().replaceAll(" ", "-"), rows: values.map((_, i) => String(i)), values, x: { low: -0.5, high: values[0]!.length - 0.5 }, at: (i) => i - 0.5,
      xLabel: "LUN", yLabel: "channel", words: (value) => `${threeDigits(value)} MB/s`, scale: { low: 0, high },
    });
    onLeave(() => map.plot.remove());
    return h("article", {}, h("h3", {}, title), map.node);
  };
  return h("section", {}, h("h2", {}, "Every LUN"), h("p", { class: "quiet" }, "One LUN at a time, by one thread: equal cells mean equal LUNs."),
    h("div", { class: "multiples" }, figure("Writes [MB/s]", findings.write_mb_per_s), figure("Reads [MB/s]", findings.read_mb_per_s)));
}

function wear(findings: BlockWear): HTMLElement {
  const most = Math.max(...findings.erase_ms, ...findings.write_ms, ...findings.read_ms) * 1.12;
  const share = Math.max(0.12, ...findings.failing_share) * 1.12;
  const lines: [string, number[], string, number[]][] = [["erase", findings.erase_ms, "ink", []], ["write", findings.write_ms, "sw", []], ["read", findings.read_ms, "rr", []]];
  const plot = removedOnLeave(new Plot({
    title: `Wear of block ${findings.block}`, name: "wear", height: 300,
    x: { range: { low: 0, high: Math.max(findings.cycles, 1) }, label: "erases of the block", ticks: linearTicks, tick: () => count },
    y: { range: { low: 0, high: most }, label: "response time [ms]", ticks: linearTicks, tick: () => tickNumber },
    right: { range: { low: 0, high: share }, label: "reads that fail", ticks: linearTicks, tick: () => (value) => `${threeDigits(value * 100)} %` },
    paint: (pen, plane, right) => {
      const line = (values: number[], y: (value: number) => number) => values.map((value, i): [number, number] => [plane.x(findings.at[i]!), y(value)]);
      for (const [, values, hue, dash] of lines) pen.line(line(values, plane.y), color(hue), 1.6, dash);
      pen.line(line(findings.failing_share, right!), color("accent"), 1.4, [5, 3]);
      if (findings.first_failure) pen.line([[plane.x(findings.first_failure), plane.top], [plane.x(findings.first_failure), plane.top + plane.height]], color("muted"), 1, [2, 3]);
    },
  }));
  return h("section", {}, h("h2", {}, "Wear of one block"),
    h("p", { class: "quiet" }, `Block ${findings.block} (channel:LUN:block) was erased, written and read ${count(findings.cycles)} times. `,
      findings.first_failure ? `The first read failed after ${count(findings.first_failure)} erases.` : "No read failed.", findings.erase_failed ? " Finally an erase failed." : ""),
    h("ul", { class: "legend" }, lines.map(([name, , hue]) => h("li", { vars: { "--hue": `var(--${hue})` } }, name)), h("li", { class: "stroke dashed" }, "reads that fail (right)")),
    plot.node, plot.saving([["CSV", () => saveCsv("wear", ["erases", "erase_ms", "write_ms", "read_ms", "failing_share"], findings.at.map((at: number, i: number) => [at, findings.erase_ms[i], findings.write_ms[i], findings.read_ms[i], findings.failing_share[i]]))]]));
}

function scaling(lines: ScalingCurve[]): HTMLElement {
  const groups: [string, ScalingCurve[]][] = ["writes", "reads"].map((word) => [word, lines.filter((each) => each.name.startsWith(word))]);
  const figure = ([word, lines]: [string, ScalingCurve[]]) => {
    const degrees = [...new Set<number>(lines.flatMap((each) => each.degrees))].sort((a, b) => a - b);
    const most = Math.max(...lines.flatMap((each) => each.mb_per_s)) * 1.08;
    const hue = word === "writes" ? "sw" : "rr";
    const dashes = [[], [6, 4], [2, 3], [8, 3, 2, 3]];
    const plot = removedOnLeave(new Plot({
      title: `Throughput: ${word}`, name: `scaling-${word}`, height: 240,
      x: { range: { low: Math.log2(degrees[0]!) - 0.2, high: Math.log2(degrees.at(-1)!) + 0.2 }, label: [...new Set(lines.map((each) => each.over))].join(" or "), ticks: () => degrees.map(Math.log2), tick: () => (value) => count(2 ** value) },
      y: { range: { low: 0, high: most }, label: "MB/s", ticks: linearTicks, tick: () => tickNumber },
      paint: (pen, plane) => lines.forEach((each, i) => {
        const points = each.degrees.map((degree: number, j: number): [number, number] => [plane.x(Math.log2(degree)), plane.y(each.mb_per_s[j]!)]);
        pen.line(points, color(hue), 1.6, dashes[i % dashes.length]);
        for (const [x, y] of points) pen.dot(x, y, 3, color(hue));
      }),
    }));
    const names = ["line", "dashed", "dotted", "dash and dot"];
    return h("article", {}, h("h3", {}, word), h("p", { class: "quiet" }, lines.map((each, i) => `${names[i % names.length]}: ${each.name.replace(`${word}, `, "")}`).join("; ")), plot.node,
      plot.saving([["CSV", () => saveCsv(`scaling-${word}`, ["line", "degree", "mb_per_s"], lines.flatMap((each) => each.degrees.map((degree: number, i: number) => [each.name, degree, each.mb_per_s[i]])))]]));
  };
  return h("section", {}, h("h2", {}, "Parallelism"), h("p", { class: "quiet" }, "A line bends where all threads wait for the same resource."), h("div", { class: "multiples" }, groups.filter(([, lines]) => lines.length).map(figure)));
}
