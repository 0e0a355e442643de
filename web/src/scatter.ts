// A scatter of the points of a sweep over any two of its parameters and measures.

import { color, h } from "./dom";
import { valueText, type Drawing, type Line, type Scale } from "./parallel";
import type { Pen } from "./pen";
import { Plot, type Plane, type Scale as PlotScale } from "./plot";

/** An axis: a scale, and the column of its values. */
export interface Side { scale: Scale; column: number }
export interface Scattered extends Pick<Drawing, "lines" | "isKept" | "hue" | "front" | "selected"> { x: Side; y: Side }

const RANGE = { low: -0.04, high: 1.04 }; // of shares of an axis, with a margin
const REACH_PX = 14;

export class Scatter {
  readonly node: HTMLElement;
  private readonly plot: Plot;
  private drawing: Scattered | null = null;

  constructor(name: string, picked: (index: number) => void) {
    this.plot = new Plot({
      title: name, name: `${name}-scatter`, height: 360, x: this.axis("x"), y: this.axis("y"),
      paint: (pen, plane) => this.paint(pen, plane),
      at: (x, y, plane) => {
        const line = x === null ? undefined : this.nearest(x, y, plane);
        this.plot.over.style.cursor = line ? "pointer" : "default";
        this.plot.tip(line && this.drawing ? `Point ${line.index}: ${[this.drawing.x, this.drawing.y].map((side) => `${nameOf(side)} ${valueText(side.scale.axis, line.values[side.column])}`).join(", ")}` : "");
      },
      clicked: (x, y, plane) => {
        const line = this.nearest(x, y, plane);
        if (line) picked(line.index);
      },
    });
    this.node = h("div", {}, this.plot.node, this.plot.saving());
  }

  show(drawing: Scattered): void {
    this.drawing = drawing;
    this.plot.draw();
    this.plot.node.dataset.front = [...drawing.front].sort((a, b) => a - b).join(" ");
  }

  remove(): void {
    this.plot.remove();
  }

  /** An axis of the plot, in shares of the scale that is shown. */
  private axis(which: "x" | "y"): PlotScale {
    const view = this;
    return {
      range: RANGE, size: which === "y" ? 84 : 34,
      get label() { return view.drawing ? nameOf(view.drawing[which]) : ""; },
      ticks: () => this.drawing?.[which].scale.ticks().map((value) => this.drawing![which].scale.share(value)) ?? [],
      tick: () => (share) => {
        const { scale } = this.drawing![which];
        const value = scale.ticks().find((each) => scale.share(each) === share);
        return valueText(scale.axis, value);
      },
    };
  }

  private at(line: Line, plane: Plane): [number, number] {
    const [x, y] = [this.drawing!.x, this.drawing!.y].map(({ scale, column }) => {
      const value = line.values[column];
      return value === null || value === undefined ? NaN : scale.share(value);
    }) as [number, number];
    return [plane.x(x), plane.y(y)];
  }

  private nearest(x: number, y: number, plane: Plane): Line | undefined {
    const far = (line: Line) => {
      const [lineX, lineY] = this.at(line, plane);
      return Math.hypot(lineX - plane.x(x), lineY - plane.y(y));
    };
    const near = (this.drawing?.lines ?? []).filter((line) => this.drawing!.isKept(line) && far(line) < REACH_PX);
    return near.sort((a, b) => far(a) - far(b))[0];
  }

  private paint(pen: Pen, plane: Plane): void {
    if (!this.drawing) return;
    const { lines, isKept, hue, front, selected } = this.drawing;
    const visible = lines.filter((line) => isKept(line) && this.at(line, plane).every(Number.isFinite));
    const best = visible.filter((line) => front.has(line.index)).map((line) => this.at(line, plane)).sort(([a], [b]) => a - b);
    // Between two points of the front the better value of either is not reached: a step, not a slope.
    pen.line(best.flatMap(([x, y], i): [number, number][] => (i ? [[x, best[i - 1]![1]], [x, y]] : [[x, y]])), color("muted"), 1.4, [4, 3]);
    for (const line of visible) {
      const [x, y] = this.at(line, plane);
      if (line.index === selected) pen.dot(x, y, 8, color("accent"));
      if (front.has(line.index)) pen.dot(x, y, 6, color("ink"));
      pen.dot(x, y, front.has(line.index) ? 4.5 : 3.5, hue(line));
    }
  }
}

function nameOf({ scale: { axis } }: Side): string {
  return `${axis.name.replaceAll("_", " ")}${axis.better ? (axis.better < 0 ? " (less is better)" : " (more is better)") : ""}`;
}
