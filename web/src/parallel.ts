// Parallel coordinates: a vertical axis for each varied parameter or measure, a line for each
// point. Dragging along an axis keeps the lines that pass there.

import { color, fill, h } from "./dom";
import { CanvasPen, SvgPen, type Pen } from "./pen";
import { buttons, download } from "./save";
import { bytes, count, duration, linearTicks, logTicks, threeDigits } from "./format";

export interface Axis { name: string; varies: boolean; better: number; unit: string; logarithmic: boolean; words: string[] | null }
/** The selected part of an axis: values, or indices of words. */
export interface Brush { low: number; high: number }

export interface Line { index: number; values: (number | null)[] }

export function valueText(axis: Axis, value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (axis.words) return axis.words[value] ?? "–";
  if (axis.unit === "ns") return duration(value);
  if (axis.unit === "bytes") return bytes(value);
  if (axis.unit === "bytes_per_s") return `${bytes(value)}/s`;
  return Number.isInteger(value) ? count(value) : threeDigits(value);
}

/** Position of values on an axis, from 0 at its foot to 1 at its head. */
export class Scale {
  private readonly low: number;
  private readonly high: number;
  private readonly log: boolean;

  constructor(readonly axis: Axis, values: (number | null)[]) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) if (value !== null) [low, high] = [Math.min(low, value), Math.max(high, value)];
    if (axis.words) [low, high] = [-0.3, axis.words.length - 0.7];
    if (!(high > low)) [low, high] = Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1];
    this.log = axis.logarithmic && low > 0;
    [this.low, this.high] = [low, high];
  }

  share(value: number): number {
    return this.log ? Math.log(value / this.low) / Math.log(this.high / this.low) : (value - this.low) / (this.high - this.low);
  }

  at(share: number): number {
    return this.log ? this.low * (this.high / this.low) ** share : this.low + share * (this.high - this.low);
  }

  /** Bytes have short names at multiples of powers of two. */
  private binary(): number[] {
    if (this.log) {
      const all = Array.from({ length: 64 }, (_, i) => 2 ** i).filter((each) => each >= this.low && each <= this.high);
      return all.filter((_, i) => i % Math.ceil(all.length / 7) === 0);
    }
    const step = 2 ** Math.ceil(Math.log2((this.high - this.low) / 6));
    const first = Math.ceil(this.low / step);
    return Array.from({ length: 14 }, (_, i) => (first + i) * step).filter((each) => each <= this.high);
  }

  ticks(): number[] {
    if (this.axis.words) return this.axis.words.map((_, i) => i);
    if (this.axis.unit === "bytes" && this.high > 8192) return this.binary();
    const ticks = this.log ? logTicks(this.low, this.high) : linearTicks(this.low, this.high, 5);
    return ticks.length > 8 ? ticks.filter((_, i) => i % Math.ceil(ticks.length / 8) === 0) : ticks;
  }
}

export interface Drawing { axes: Axis[]; scales: Scale[]; lines: Line[]; isKept: (line: Line) => boolean; hue: (line: Line) => string; front: Set<number>; selected: number | null; brushes: Map<string, Brush>; columns: number[] }

const [TOP, FOOT, SIDE, AXIS_GAP] = [46, 22, 64, 92];

export class Parallel {
  readonly node: HTMLElement;
  private readonly frame = h("div", { class: "scroll parallel", tabindex: 0, role: "region", "aria-label": "Parallel coordinates" });
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private drawing: Drawing | null = null;
  private width = 600;
  private readonly height = 380;
  private readonly watch = new ResizeObserver(() => this.draw());

  constructor(private readonly name: string, private readonly brushed: (name: string, brush: Brush | null) => void, private readonly picked: (index: number) => void) {
    this.frame.append(this.canvas);
    this.node = h("figure", { class: "figure" }, this.frame);
    this.watch.observe(this.frame);
    let from: { axis: number; y: number } | null = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      const axis = this.axisAt(event.offsetX);
      from = { axis, y: event.offsetY };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (!from || !this.drawing) return;
      const { axis, y } = from;
      from = null;
      if (Math.abs(event.offsetY - y) < 4) return this.clicked(event.offsetX, event.offsetY, axis);
      if (axis < 0) return;
      const [one, other] = [this.shareAt(y), this.shareAt(event.offsetY)];
      const scale = this.drawing.scales[axis]!;
      this.brushed(scale.axis.name, { low: scale.at(Math.min(one, other)), high: scale.at(Math.max(one, other)) });
    });
  }

  show(drawing: Drawing): void {
    this.drawing = drawing;
    this.draw();
  }

  /** Horizontal position of an axis [CSS pixels]. */
  x(axis: number): number {
    const n = this.drawing?.axes.length ?? 1;
    return SIDE + (n > 1 ? (axis * (this.width - 2 * SIDE)) / (n - 1) : 0);
  }

  private y(share: number): number {
    return TOP + (1 - share) * (this.height - TOP - FOOT);
  }

  private shareAt(y: number): number {
    return Math.min(Math.max(1 - (y - TOP) / (this.height - TOP - FOOT), 0), 1);
  }

  private axisAt(x: number): number {
    const axes = this.drawing?.axes ?? [];
    return axes.findIndex((_, i) => Math.abs(this.x(i) - x) < 18);
  }

  private clicked(x: number, y: number, axis: number): void {
    const drawing = this.drawing!;
    if (axis >= 0 && drawing.brushes.has(drawing.axes[axis]!.name)) return this.brushed(drawing.axes[axis]!.name, null);
    let [best, least] = [-1, 8];
    for (const line of drawing.lines) {
      if (!drawing.isKept(line)) continue;
      const far = this.distance(line, x, y);
      if (far < least) [best, least] = [line.index, far];
    }
    if (best >= 0) this.picked(best);
  }

  private distance(line: Line, x: number, y: number): number {
    const points = this.points(line);
    const right = points.findIndex(([at]) => at >= x);
    if (right < 1) return right === 0 ? Math.hypot(points[0]![0] - x, points[0]![1] - y) : Infinity;
    const [[x0, y0], [x1, y1]] = [points[right - 1]!, points[right]!];
    const lineY = y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
    return Math.abs(lineY - y);
  }

  private points(line: Line, ratio = 1): [number, number][] {
    const { scales, columns } = this.drawing!;
    return scales.map((scale, i) => {
      const value = line.values[columns[i]!];
      return [this.x(i) * ratio, value === null || value === undefined ? NaN : this.y(scale.share(value)) * ratio];
    });
  }

  private draw(): void {
    if (!this.drawing) return;
    this.width = Math.max(Math.floor(this.frame.clientWidth) || 600, 2 * SIDE + (this.drawing.axes.length - 1) * AXIS_GAP);
    const ratio = devicePixelRatio;
    Object.assign(this.canvas, { width: this.width * ratio, height: this.height * ratio });
    Object.assign(this.canvas.style, { width: `${this.width}px`, height: `${this.height}px` });
    this.paint(new CanvasPen(this.canvas.getContext("2d")!, ratio), ratio);
    this.node.dataset.drawn = String(Number(this.node.dataset.drawn ?? 0) + 1);
  }

  private paint(pen: Pen, ratio: number): void {
    const { axes, scales, lines, isKept, hue, front, selected, brushes } = this.drawing!;
    const [faint, ink, muted] = [color("grid"), color("ink"), color("muted")];
    const visible = lines.filter(isKept);
    for (const line of lines) if (!isKept(line)) pen.line(this.points(line, ratio), faint, 0.6);
    for (const line of visible) if (!front.has(line.index)) pen.line(this.points(line, ratio), hue(line), visible.length > 300 ? 0.5 : 0.8);
    for (const line of visible) if (front.has(line.index)) {
      pen.line(this.points(line, ratio), hue(line), 2.6);
      for (const [x, y] of this.points(line, ratio)) if (Number.isFinite(y)) pen.dot(x, y, 2.6, ink);
    }
    for (const line of lines) if (line.index === selected) pen.line(this.points(line, ratio), color("accent"), 3, [6, 4]);
    axes.forEach((axis, i) => {
      const x = this.x(i) * ratio;
      const brush = brushes.get(axis.name);
      pen.line([[x, this.y(0) * ratio], [x, this.y(1) * ratio]], muted, 1.4);
      if (brush) {
        const [low, high] = [scales[i]!.share(brush.low), scales[i]!.share(brush.high)].map((each) => this.y(Math.min(Math.max(each, 0), 1)) * ratio) as [number, number];
        pen.rect(x - 7 * ratio, high, 14 * ratio, Math.max(low - high, 2), color("accent"), 0.35);
      }
      pen.text(axis.name.replaceAll("_", " "), x, 18 * ratio, ink, "center");
      pen.text(axis.better ? (axis.better < 0 ? "less is better" : "more is better") : "", x, 33 * ratio, muted, "center");
      for (const value of scales[i]!.ticks()) {
        const y = this.y(scales[i]!.share(value)) * ratio;
        pen.line([[x - 3 * ratio, y], [x + 3 * ratio, y]], muted, 1);
        const words = valueText(axis, value);
        pen.rect(x + 5 * ratio, y - 7 * ratio, (6.2 * words.length + 4) * ratio, 14 * ratio, color("card"), 0.8);
        pen.text(words, x + 7 * ratio, y + 4 * ratio, ink);
      }
    });
  }

  saving(more: [string, () => void][]): HTMLElement {
    return buttons([["SVG", () => {
      const pen = new SvgPen();
      this.paint(pen, 1);
      download(`${this.name}.svg`, pen.file(this.width, this.height, `Parallel coordinates: ${this.name}`, color("card")), "image/svg+xml");
    }], ["PNG", () => this.canvas.toBlob((blob) => blob && download(`${this.name}.png`, blob, "image/png"))], ...more]);
  }

  remove(): void {
    this.watch.disconnect();
    fill(this.frame);
  }
}
