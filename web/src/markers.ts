// Marker shapes, and whiskers: a pattern is recognised without its colour.

import type { Pen } from "./pen";

/** Corners around the middle, in radii; a circle has none. As the figures of the report. */
const SQUARE: [number, number][] = [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]];
const CORNERS: Record<string, [number, number][]> = {
  "■": SQUARE,
  "◆": SQUARE.map(([x, y]) => [(x - y) * 0.72, (x + y) * 0.72]),
  "▲": [[0, -1.1], [1.1, 0.9], [-1.1, 0.9]],
  "▼": [[0, 1.1], [1.1, -0.9], [-1.1, -0.9]],
  "◀": [[-1.1, 0], [0.9, -1.1], [0.9, 1.1]],
  "▶": [[1.1, 0], [-0.9, -1.1], [-0.9, 1.1]],
};
export const SHAPES = ["●", ...Object.keys(CORNERS)] as const;
const OF_PATTERNS: Record<string, string> = { SR: "●", RR: "■", SW: "▲", RW: "◆" };

/** The shape of a pattern; others have that of their position. */
export function shapeOf(pattern: string, position: number): string {
  return OF_PATTERNS[pattern] ?? SHAPES[position % SHAPES.length]!;
}

export function mark(pen: Pen, shape: string, x: number, y: number, radius: number, color: string): void {
  const corners = CORNERS[shape];
  const size = radius * pen.ratio;
  if (corners) pen.polygon(corners.map(([dx, dy]) => [x + dx * size, y + dy * size]), color);
  else pen.dot(x, y, radius, color);
}

/** A vertical whisker with a cap at each end. */
export function whisker(pen: Pen, x: number, from: number, to: number, color: string): void {
  const cap = 4 * pen.ratio;
  pen.line([[x, from], [x, to]], color, 1.4);
  for (const y of [from, to]) pen.line([[x - cap, y], [x + cap, y]], color, 1.4);
}
