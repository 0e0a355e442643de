// Paints a range of a run: single I/Os as dots, rows of neighbours as a density with the minimum
// and the maximum of each, and annotations such as the end of the start-up.

import type { Picture, Plain } from "./api";
import { color } from "./dom";
import { ACTIVITIES, MANY, OPERATIONS } from "./palette";
import type { Pen } from "./pen";
import type { Plane } from "./plot";
import { modeName } from "./format";

export type Axis = "number" | "time";
export const COLOURS = ["pattern", "mode", "size", "stream", "component", "partition", "cause"] as const;
export type Colour = (typeof COLOURS)[number];

export interface Key { words: string; color: string }

/** A colour without a meaning of its own, from a palette of distinct colours. */
export function distinctColour(code: number): string {
  return visible(MANY[code % MANY.length]!);
}

/** The colour of a cause column. */
export function activity(column: string): string {
  return visible((ACTIVITIES as Record<string, string>)[column] ?? OPERATIONS.at(-1)!);
}

/** The colour of a flash operation, by its index: that of its cause. */
export function operation(what: number): string {
  return visible(OPERATIONS[what] ?? OPERATIONS.at(-1)!);
}

/** Dark colours become lighter in the dark scheme. */
function visible(hue: string): string {
  const [red, green, blue] = channels(hue);
  const dim = 0.3 * red + 0.59 * green + 0.11 * blue < 110;
  return dim && matchMedia("(prefers-color-scheme: dark)").matches ? `#${[red, green, blue].map((each) => Math.round(each + (255 - each) * 0.55).toString(16).padStart(2, "0")).join("")}` : hue;
}

/** The colour of each I/O, and the legend. */
export function coloured(picture: Picture, by: Colour, own: string, bytes: (n: number) => string, spec: Plain = {}): { of: (i: number) => string; keys: Key[] } {
  const { at } = picture;
  const one = { of: () => own, keys: [] };
  const coded = (codes: ArrayLike<number> | undefined, words: (code: number) => string, look: (code: number, index: number) => string) => {
    if (!codes) return one;
    const distinct = [...new Set(Array.from(codes))].sort((a, b) => a - b);
    const indexOf = new Map(distinct.map((code, i) => [code, i]));
    const looks = distinct.map((code, i) => look(code, i));
    return { of: (i: number) => looks[indexOf.get(codes[i]!)!]!, keys: distinct.slice(0, 24).map((code, i) => ({ words: words(code), color: looks[i]! })) };
  };
  if (by === "mode") return coded(at.mode, modeName, (code) => color(["rr", "rw", "sw"][code] ?? "muted"));
  if (by === "size") return coded(at.io_size_bytes, bytes, (_, index) => distinctColour(index));
  if (by === "stream") return coded(at.stream, (code) => `stream ${code}`, (_, index) => distinctColour(index));
  if (by === "component") return coded(at.component, (code) => (code ? "second pattern" : "first pattern"), (_, index) => distinctColour(index));
  if (by === "partition") return coded(partitionsOf(at.offset_bytes, spec), (code) => `partition ${code}`, (_, index) => distinctColour(index));
  if (by === "cause") return coded(at.cause, (code) => picture.causes?.[code] ?? `cause ${code}`, (code) => activity(picture.cause_columns?.[code] ?? ""));
  return one;
}

/** The partition of the target of each I/O. */
function partitionsOf(offsets: ArrayLike<number> | undefined, { target_offset = 0, target_size, partitions }: Plain): number[] | undefined {
  if (!offsets || !target_size) return undefined;
  return Array.from(offsets, (offset) => Math.floor(((offset - target_offset) * partitions) / target_size));
}

/** Begin and end of each row or I/O on the axis. */
export function ends(picture: Picture, axis: Axis): { from: ArrayLike<number>; to: ArrayLike<number> } {
  const { at } = picture;
  if (picture.kind === "ios") {
    const positions = (axis === "number" ? at.number : at.submit_ns) ?? new Float64Array(0);
    return { from: positions, to: positions };
  }
  return axis === "number" ? { from: at.start!, to: at.stop! } : { from: at.first_ns!, to: at.last_ns! };
}

/** `mean`: the colour of the running mean, where it is not that of ink. */
export interface Annotations { startup: number; period: number; hue: string; mean?: string; selected: { x: number; y: number } | null }

/** The end of the start-up on this axis, if the picture contains it. */
function startupEnd(picture: Picture, axis: Axis, ios: number): number | null {
  if (!ios) return null;
  if (axis === "number") return ios;
  const { from } = ends(picture, axis);
  const numbers = picture.at.number ?? picture.at.start;
  if (!numbers || picture.streams > 1) return null;
  for (let i = 0; i < numbers.length; i++) if (numbers[i]! >= ios) return i ? from[i]! : null;
  return Infinity;
}

export function paint(pen: Pen, plane: Plane, picture: Picture, axis: Axis, annotations: Annotations, edges: number[], look: (i: number) => string): void {
  const end = startupEnd(picture, axis, annotations.startup);
  const right = plane.left + plane.width;
  if (end !== null) {
    const x = Math.min(Math.max(plane.x(Math.min(end, 1e18)), plane.left), right);
    pen.rect(plane.left, plane.top, x - plane.left, plane.height, color("startup"));
  }
  if (axis === "number" && annotations.period > 1) periods(pen, plane, annotations);
  if (picture.kind === "ios") dots(pen, plane, picture, axis, look);
  else rows(pen, plane, picture, axis, annotations.hue, edges);
  averages(pen, plane, picture, axis, annotations.mean ?? color("ink"));
  if (annotations.selected) {
    const x = plane.x(annotations.selected.x);
    pen.line([[x, plane.top], [x, plane.top + plane.height]], color("accent"), 1, [3, 3]);
    pen.dot(x, plane.y(annotations.selected.y), 5, color("accent"));
  }
}

const FEWEST_PIXELS = 14;

function periods(pen: Pen, plane: Plane, annotations: Annotations): void {
  const wide = plane.x(annotations.startup + annotations.period) - plane.x(annotations.startup);
  if (wide < FEWEST_PIXELS) return;
  const from = Math.ceil(-(plane.x(annotations.startup) - plane.left) / wide);
  for (let i = Math.max(from, 0); ; i++) {
    const x = plane.x(annotations.startup + i * annotations.period);
    if (x > plane.left + plane.width) return;
    pen.line([[x, plane.top], [x, plane.top + plane.height]], color("grid"), 1.5);
  }
}

function dots(pen: Pen, plane: Plane, picture: Picture, axis: Axis, look: (i: number) => string): void {
  const { from } = ends(picture, axis);
  const times = picture.at.response_time_ns!;
  const radius = picture.rows > 3000 ? 1.1 : picture.rows > 600 ? 1.6 : picture.rows > 150 ? 2.4 : 3.5;
  for (let i = 0; i < picture.rows; i++) pen.dot(plane.x(from[i]!), plane.y(Math.max(times[i]!, 1)), radius, look(i));
}

function rows(pen: Pen, plane: Plane, picture: Picture, axis: Axis, hue: string, edges: number[]): void {
  const { from, to } = ends(picture, axis);
  const { min_ns: min, max_ns: max, spread } = picture.at;
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(plane.width));
  canvas.height = Math.max(1, Math.round(plane.height));
  const ctx = canvas.getContext("2d")!;
  const image = ctx.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const [red, green, blue] = channels(hue);
  const shade = (alpha: number) => ((Math.round(alpha * 255) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  const box = (x0: number, x1: number, y0: number, y1: number, tone: number) => {
    for (let y = Math.max(y0, 0); y < Math.min(y1, canvas.height); y++)
      pixels.fill(tone, y * canvas.width + Math.max(x0, 0), Math.max(y * canvas.width + Math.min(x1, canvas.width), y * canvas.width + Math.max(x0, 0)));
  };
  const up = (value: number) => Math.round(plane.y(Math.max(value, 1)) - plane.top);
  const first = picture.first_class ?? 0;
  const classes = picture.classes ?? 0;
  const tops = Array.from({ length: classes + 1 }, (_, c) => up(edges[first + c] ?? 1));
  const full = shade(0.95);
  const faint = shade(0.3);
  for (let i = 0; i < picture.rows; i++) {
    const x0 = Math.floor(plane.x(from[i]!) - plane.left);
    const x1 = Math.max(Math.floor(plane.x(to[i]!) - plane.left), x0 + 1);
    if (x1 < 0 || x0 > canvas.width) continue;
    if (!spread) box(x0, x1, up(max![i]!), Math.max(up(min![i]!), up(max![i]!) + 1), faint);
    else {
      let most = 0;
      for (let c = 0; c < classes; c++) most = Math.max(most, spread[i * classes + c]!);
      for (let c = 0; c < classes; c++) {
        const n = spread[i * classes + c]!;
        if (n) box(x0, x1, tops[c + 1]!, Math.max(tops[c]!, tops[c + 1]! + 1), shade(0.16 + 0.74 * Math.log1p(n) / Math.log1p(most)));
      }
    }
    // The minimum and the maximum are exact, and always visible.
    box(x0, x1, up(max![i]!) - 1, up(max![i]!) + 1, full);
    box(x0, x1, up(min![i]!) - 1, up(min![i]!) + 1, full);
  }
  ctx.putImageData(image, 0, 0);
  pen.image(canvas, plane.left, plane.top);
}

function averages(pen: Pen, plane: Plane, picture: Picture, axis: Axis, tone: string): void {
  const { average_ns: without, average_with_ns: all } = picture.at;
  const { to } = ends(picture, axis);
  const line = (values: ArrayLike<number>): [number, number][] => {
    const step = Math.max(1, Math.floor(picture.rows / 1500));
    const points: [number, number][] = [];
    for (let i = 0; i < picture.rows; i += step) points.push([plane.x(to[i]!), values[i]! > 0 ? plane.y(values[i]!) : NaN]);
    return points;
  };
  if (all) pen.line(line(all), tone, 1.2, [5, 4]);
  if (without) pen.line(line(without), tone, 1.4);
}

function channels(hue: string): [number, number, number] {
  const value = Number.parseInt(hue.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
