// How many I/Os took longer than so long (CCDF), of several runs in the same axes: where the tail is.

import type { Picture } from "./api";
import { h } from "./dom";
import { Plot } from "./plot";
import { saveCsv } from "./save";
import { duration, logTicks } from "./words";

export interface Tail { words: string; hue: string; dash?: number[]; picture: Picture }

interface Steps { of: Tail; at: number[]; share: number[] }

/** Shares that took longer, at the lower edge of each class that something is in. */
function steps(of: Tail, edges: number[]): Steps {
  const { picture } = of;
  const classes = picture.classes ?? 0;
  const first = picture.first_class ?? 0;
  const counts = Array.from({ length: classes }, () => 0);
  picture.at.spread?.forEach((n, i) => { counts[i % classes]! += n; });
  const total = counts.reduce((sum, n) => sum + n, 0);
  const [at, share]: [number[], number[]] = [[], []];
  let left = total;
  counts.forEach((n, i) => {
    at.push(Math.max(edges[first + i]!, 1));
    share.push(left / Math.max(total, 1));
    left -= n;
  });
  return { of, at, share };
}

export function tails(name: string, runs: Tail[], edges: number[]): HTMLElement | null {
  const all = runs.filter((each) => each.picture.at.spread).map((each) => steps(each, edges)).filter((each) => each.at.length);
  if (!all.length) return null;
  const ends = all.flatMap((each) => [each.at[0]!, each.at.at(-1)!]);
  const [low, high] = [Math.min(...ends) / 1.2, Math.max(...ends) * 1.4];
  const least = Math.min(0.1, ...all.flatMap((each) => each.share)) / 1.5;
  const shares = [1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7].filter((each) => each >= least);
  const plot = new Plot({
    title: `Share of I/Os that took longer: ${name}`, name: `${name}-ccdf`, height: 240,
    x: { range: { low: Math.log10(low), high: Math.log10(high) }, label: "response time", ticks: (from, to) => logTicks(10 ** from, 10 ** to).map(Math.log10), tick: () => (value) => duration(10 ** value) },
    y: { range: { low: least, high: 1.3 }, log: true, label: "share that took longer", ticks: () => shares, tick: () => (value) => (value >= 0.01 ? `${Math.round(value * 100)} %` : `${Number((value * 100).toPrecision(1))} %`) },
    paint: (pen, plane) => {
      for (const { of, at, share } of all) {
        const points: [number, number][] = at.flatMap((value, i): [number, number][] => {
          const x = plane.x(Math.log10(value));
          return i ? [[x, plane.y(share[i - 1]!)], [x, plane.y(share[i]!)]] : [[x, plane.y(share[i]!)]];
        });
        pen.line(points, of.hue, 1.8, of.dash);
      }
    },
  });
  return h("div", {}, h("p", { class: "quiet" }, "Share of I/Os that took longer than so long: the further left and down, the better."), plot.node,
    plot.saving([["CSV", () => saveCsv(`${name}-ccdf`, ["run", "response_time_ns", "share_longer"], all.flatMap((each) => each.at.map((value, i) => [each.of.words, value, each.share[i]])))]]));
}
