// A plot: uPlot provides axes, cursor and selection; the caller paints the contents with
// a pen that also writes SVG.

import uPlot from "uplot";
import { color, h } from "./dom";
import { CanvasPen, FONT, SvgPen, type Pen } from "./pen";
import { buttons, download } from "./save";

export interface Range { low: number; high: number }

/** Conversion of values to positions, and the area of the plot [pixels of the pen]. */
export interface Plane {
  x(value: number): number;
  y(value: number): number;
  left: number; top: number; width: number; height: number;
}

export interface Scale {
  range: Range;
  log?: boolean;
  label: string;
  size?: number;
  ticks(low: number, high: number, about: number): number[];
  tick(low: number, high: number): (value: number) => string;
}

export interface Options {
  title: string;
  name: string;
  height: number;
  x: Scale;
  y: Scale;
  right?: Scale;
  paint(pen: Pen, plane: Plane, right?: (value: number) => number): void;
  /** Called with a range of x selected with the mouse. */
  chosen?(range: Range): void;
  /** Called with the values at the mouse, or none. */
  at?(x: number | null, y: number, plane: Plane): void;
  clicked?(x: number, y: number, plane: Plane): void;
}

export class Plot {
  readonly node: HTMLElement;
  private readonly frame: HTMLElement;
  private readonly hint = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  private u: uPlot;
  private readonly watch: ResizeObserver;

  constructor(private readonly options: Options) {
    this.frame = h("div", { class: "plot" });
    this.node = h("figure", { class: "figure" }, this.frame);
    this.u = this.make(600);
    this.frame.append(this.hint);
    this.watch = new ResizeObserver(() => {
      const width = Math.floor(this.frame.clientWidth);
      if (width > 0 && width !== this.u.width) this.u.setSize({ width, height: this.height(width) });
    });
    this.watch.observe(this.frame);
  }

  private height(width: number): number {
    return width < 500 ? Math.min(this.options.height, Math.max(220, this.options.height * 0.7)) : this.options.height;
  }

  private make(width: number): uPlot {
    const { x, y, right } = this.options;
    const ink = () => color("muted");
    const axis = (scale: Scale, side: number, key: string): uPlot.Axis => ({
      side, scale: key, label: () => scale.label, labelSize: 18, labelGap: 2, labelFont: `12px ${FONT}`, font: `11px ${FONT}`,
      stroke: ink, size: scale.size ?? (side % 2 ? 66 : 34), gap: 4,
      grid: { show: key !== "right", stroke: () => color("grid"), width: 1 }, ticks: { stroke: () => color("grid"), width: 1, size: 4 },
      splits: (u, _axis, low, high) => scale.ticks(low, high, side % 2 ? u.height / 60 : u.bbox.width / devicePixelRatio / 110),
      values: (u, splits) => {
        const { min = 0, max = 1 } = u.scales[key] ?? {};
        return splits.map(scale.tick(min ?? 0, max ?? 1));
      },
      filter: (_u, splits) => splits,
    });
    const range = (scale: Scale) => (): [number, number] => [scale.range.low, scale.range.high];
    const u = new uPlot(
      {
        width, height: this.options.height,
        padding: [null, right ? null : 34, null, null], // half of the tick 10,000,000
        legend: { show: false },
        cursor: { drag: { x: Boolean(this.options.chosen), y: false, setScale: false }, points: { show: false }, x: Boolean(this.options.at), y: Boolean(this.options.at) },
        scales: {
          x: { time: false, range: range(x) },
          y: { distr: y.log ? 3 : 1, log: 10, range: range(y) },
          ...(right ? { right: { range: range(right) } } : {}),
        },
        axes: [axis(x, 2, "x"), axis(y, 3, "y"), ...(right ? [axis(right, 1, "right")] : [])],
        series: [{}, { scale: "y", paths: () => null, points: { show: false } }, ...(right ? [{ scale: "right", paths: () => null, points: { show: false } }] : [])],
        hooks: {
          draw: [(u) => this.paint(u)],
          setSelect: [(u) => {
            const { left, width: w } = u.select;
            if (w > 3) this.options.chosen?.({ low: u.posToVal(left, "x"), high: u.posToVal(left + w, "x") });
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          }],
          setCursor: [(u) => {
            const { left = -1, top = -1 } = u.cursor;
            this.options.at?.(left < 0 ? null : u.posToVal(left, "x"), u.posToVal(Math.max(top, 0), "y"), this.plane(u, 1));
          }],
        },
      },
      [[0, 1], [null, null], ...(right ? [[null, null]] : [])] as uPlot.AlignedData,
      this.frame,
    );
    const { clicked } = this.options;
    if (clicked) {
      let down = 0;
      u.over.addEventListener("pointerdown", (event) => { down = event.clientX; });
      u.over.addEventListener("click", (event) => {
        const { left = -1, top = -1 } = u.cursor;
        if (Math.abs(event.clientX - down) < 4 && left >= 0) clicked(u.posToVal(left, "x"), u.posToVal(top, "y"), this.plane(u, 1));
      });
    }
    u.root.querySelector("canvas")?.setAttribute("aria-hidden", "true");
    return u;
  }

  /** The values under the mouse. */
  get over(): HTMLElement {
    return this.u.over;
  }

  /** Shows text next to the pointer; empty text hides it. */
  tip(words: string): void {
    const { left = -1, top = -1 } = this.u.cursor;
    this.hint.hidden = !words || left < 0;
    if (this.hint.hidden) return;
    this.hint.textContent = words;
    const { offsetLeft, offsetTop, clientWidth, clientHeight } = this.u.over;
    const [fromLeft, fromTop] = [offsetLeft + left + 14, offsetTop + top + 14];
    const [onRight, below] = [left > clientWidth / 2, top > clientHeight / 2];
    this.hint.style.left = onRight ? "" : `${fromLeft}px`;
    this.hint.style.right = onRight ? `${this.frame.clientWidth - fromLeft + 28}px` : "";
    this.hint.style.top = below ? "" : `${fromTop}px`;
    this.hint.style.bottom = below ? `${this.frame.clientHeight - fromTop + 28}px` : "";
  }

  valueAt(clientX: number): number {
    return this.u.posToVal(clientX - this.u.over.getBoundingClientRect().left, "x");
  }

  /** Draws again with the current ranges. */
  draw(): void {
    const { x, y, right } = this.options;
    this.u.batch(() => {
      for (const [key, scale] of Object.entries({ x, y, right })) if (scale) this.u.setScale(key, { min: scale.range.low, max: scale.range.high });
    });
    this.u.redraw(false, true);
  }

  remove(): void {
    this.watch.disconnect();
    this.u.destroy();
  }

  private plane(u: uPlot, ratio: number): Plane {
    const canvas = ratio !== 1;
    const box = canvas ? u.bbox : { left: 0, top: 0, width: u.over.clientWidth, height: u.over.clientHeight };
    return { x: (value) => u.valToPos(value, "x", canvas), y: (value) => u.valToPos(value, "y", canvas), ...box };
  }

  private paint(u: uPlot): void {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const plane: Plane = { x: (value) => u.valToPos(value, "x", true), y: (value) => u.valToPos(value, "y", true), ...bbox };
    this.options.paint(new CanvasPen(ctx, devicePixelRatio), plane, this.options.right && ((value) => u.valToPos(value, "right", true)));
    ctx.restore();
  }

  saving(more: [string, () => void][] = []): HTMLElement {
    return buttons([["SVG", () => this.saveSvg()], ["PNG", () => this.savePng()], ...more]);
  }

  private savePng(): void {
    const { canvas } = this.u.ctx;
    const whole = document.createElement("canvas");
    whole.width = canvas.width;
    whole.height = canvas.height;
    const ctx = whole.getContext("2d")!;
    ctx.fillStyle = color("card");
    ctx.fillRect(0, 0, whole.width, whole.height);
    ctx.drawImage(canvas, 0, 0);
    whole.toBlob((blob) => blob && download(`${this.options.name}.png`, blob, "image/png"));
  }

  /** Draws the figure as SVG: the same strokes, and axes of our own. */
  svg(width = 760, height = Math.max(this.options.height, 400)): string {
    const { x, y, right, title } = this.options;
    const pen = new SvgPen();
    const left = 18 + (y.size ?? 56);
    const box = { left, top: 34, width: width - left - (right ? 70 : 18), height: height - 34 - 52 };
    const to = (scale: Scale, from: number, span: number) => (value: number) => {
      const by = (each: number) => (scale.log ? Math.log(Math.max(each, 1e-9)) : each);
      return from + (span * (by(value) - by(scale.range.low))) / (by(scale.range.high) - by(scale.range.low));
    };
    const plane: Plane = { x: to(x, box.left, box.width), y: to(y, box.top + box.height, -box.height), ...box };
    const toRight = right && to(right, box.top + box.height, -box.height);
    const [ink, muted, grid] = ["ink", "muted", "grid"].map(color) as [string, string, string];
    pen.text(title, box.left, 20, ink);
    const ticks = (scale: Scale, about: number) => {
      const word = scale.tick(scale.range.low, scale.range.high);
      return scale.ticks(scale.range.low, scale.range.high, about).map((value): [number, string] => [value, word(value)]);
    };
    for (const [value, word] of ticks(y, height / 60)) {
      pen.line([[box.left, plane.y(value)], [box.left + box.width, plane.y(value)]], grid, 1);
      pen.text(word, box.left - 6, plane.y(value) + 4, muted, "right");
    }
    for (const [value, word] of ticks(x, box.width / 110)) {
      pen.line([[plane.x(value), box.top], [plane.x(value), box.top + box.height]], grid, 1);
      pen.text(word, plane.x(value), box.top + box.height + 17, muted, "center");
    }
    if (right && toRight) for (const [value, word] of ticks(right, height / 60)) pen.text(word, box.left + box.width + 6, toRight(value) + 4, muted);
    this.options.paint(pen, plane, toRight);
    pen.text(x.label, box.left + box.width / 2, height - 10, muted, "center");
    pen.text(y.label, 14, box.top + box.height / 2, muted, "center", true);
    if (right) pen.text(right.label, width - 8, box.top + box.height / 2, muted, "center", true);
    return pen.file(width, height, title, color("card"));
  }

  private saveSvg(): void {
    download(`${this.options.name}.svg`, this.svg(), "image/svg+xml");
  }
}

/** Touch gestures on a figure: two fingers zoom, one moves sideways; vertical movement scrolls the page. */
export interface Gestures {
  /** Zoom by a factor about this position on the screen. */
  zoom(factor: number, clientX: number): void;
  /** Move by a share of the width. */
  pan(share: number): void;
}

const MIN_MOVE_PX = 6;

export function onTouch(over: HTMLElement, actions: Gestures): void {
  const fingers = new Map<number, number>();
  over.style.touchAction = "pan-y";
  const distance = () => {
    const [one = 0, other = 0] = [...fingers.values()];
    return Math.max(Math.abs(one - other), 10);
  };
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") return;
    fingers.set(event.pointerId, event.clientX);
    over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (before === undefined) return;
    const moved = event.clientX - before;
    if (Math.abs(moved) < MIN_MOVE_PX) return;
    const previous = distance();
    fingers.set(event.pointerId, event.clientX);
    if (fingers.size === 1) actions.pan(-moved / Math.max(over.clientWidth, 1));
    else if (fingers.size === 2) {
      const [one, other] = [...fingers.values()] as [number, number];
      actions.zoom(previous / distance(), (one + other) / 2);
    }
  });
  for (const name of ["pointerup", "pointercancel"]) over.addEventListener(name, (event) => fingers.delete((event as PointerEvent).pointerId));
}
