// A heat map: rows of cells, darker for larger values.

import { color, h } from "./dom";
import { Plot, type Range } from "./plot";
import { saveCsv } from "./save";
import { count, linearTicks, threeDigits } from "./format";

/** From little to much; the same on light and on dark. */
export const HEAT = ["#fde0a8", "#f6b26b", "#e67c4a", "#c0433f", "#7d1f3c", "#3b0f2e"];

export interface Heat {
  title: string; name: string;
  rows: string[];
  values: (number | null)[][];
  x: Range;
  /** Where the left edge of a column is. */
  at(column: number): number;
  xLabel: string; yLabel: string;
  words(value: number): string;
  /** The scale, if it is not from minimum to maximum; cells then show their numbers. */
  scale?: Range;
}

export function heat(map: Heat): { node: HTMLElement; plot: Plot } {
  const all = map.values.flat().filter((value): value is number => value !== null);
  const [least, most] = map.scale ? [map.scale.low, map.scale.high] : [Math.min(...all), Math.max(...all)];
  const hue = (value: number) => HEAT[Math.min(Math.floor(((value - least) / Math.max(most - least, 1e-12)) * HEAT.length), HEAT.length - 1)]!;
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const rows = map.rows.length;
  const step = Math.ceil(rows / 16);
  const plot = new Plot({
    title: map.title, name: map.name, height: Math.min(70 + rows * 16, 420),
    x: { range: map.x, label: map.xLabel, ticks: (low, high, about) => linearTicks(low, high, about).map((each) => each + 0).filter((each) => each >= 0 && Number.isInteger(each)), tick: () => count },
    y: { range: { low: -rows + 0.5, high: 0.5 }, label: map.yLabel, ticks: () => map.rows.map((_, i) => -i).filter((i) => i % step === 0), tick: () => (value) => map.rows[-value] ?? "" },
    paint: (pen, plane) => map.values.forEach((row, i) => {
      const [top, bottom] = [plane.y(-i + 0.46), plane.y(-i - 0.46)];
      row.forEach((value, column) => {
        const [left, right] = [plane.x(map.at(column)), plane.x(map.at(column + 1))];
        pen.rect(left, top, Math.max(right - left - (map.scale ? 2 : 0), 0.6), bottom - top, value === null ? color("shade") : hue(value));
        if (map.scale && value !== null && right - left > 36) pen.text(threeDigits(value), (left + right) / 2, (top + bottom) / 2 + 4, "#1c1d1f", "center");
      });
    }),
    at: (x, y) => {
      const row = Math.round(-y);
      const column = x === null ? -1 : map.values[0]!.findIndex((_, i) => x >= map.at(i) && x < map.at(i + 1));
      const value = map.values[row]?.[column];
      readout.textContent = column < 0 || value === undefined ? "" : `${map.yLabel} ${map.rows[row]}, ${map.xLabel} ${count(map.at(column))}: ${value === null ? "–" : map.words(value)}`;
    },
  });
  const few = all.every(Number.isInteger) && most - least < HEAT.length; // then each has its colour
  const steps = few
    ? Array.from({ length: most - least + 1 }, (_, i) => h("li", { vars: { "--hue": hue(least + i) } }, map.words(least + i)))
    : HEAT.map((each, i) => h("li", { vars: { "--hue": each } }, `from ${map.words(least + ((most - least) * i) / HEAT.length)}`));
  return {
    plot,
    node: h("div", {}, map.scale ? null : h("ul", { class: "legend" }, most > least ? steps : h("li", { vars: { "--hue": HEAT[0]! } }, map.words(least))), plot.node, readout,
      plot.saving([["CSV", () => saveCsv(map.name, [map.yLabel, map.xLabel, "value"], map.values.flatMap((row, i) => row.map((value, column) => [map.rows[i]!, map.at(column), value])))]])),
  };
}
