// Downloads: CSV of the numbers, PNG and SVG of a figure.

import { h } from "./dom";

export function download(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const anchor = h("a", { href: url, download: name.replace(/[^\w.+-]+/g, "-") });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export type Cell = string | number | boolean | null | undefined;

/** A table that spreadsheets read, in which no text is a formula (as `results/outputs.py`). */
export function csv(head: string[], rows: Iterable<Cell[]>): string {
  const lines = [head, ...rows].map((row) => row.map(quoted).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

function quoted(cell: Cell): string {
  if (cell === null || cell === undefined) return "";
  if (typeof cell !== "string") return String(cell);
  const inert = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

export function saveCsv(name: string, head: string[], rows: Iterable<Cell[]>): void {
  download(`${name}.csv`, csv(head, rows), "text/csv");
}

export function buttons(items: [string, () => void][]): HTMLElement {
  return h("span", { class: "buttons" }, "Save ", items.map(([name, call]) =>
    h("button", { type: "button", onclick: call }, name)));
}
