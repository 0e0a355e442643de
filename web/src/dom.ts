// Elements of the page. Text from results enters it here, and only as text: there is no innerHTML.

import { Failure } from "./api";
import { onLeave } from "./route";

export type Child = Node | string | number | null | undefined | false | Child[];
type Props = Record<string, unknown>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value as EventListener);
    else if (name === "style") Object.assign(node.style, value);
    else if (name === "vars") setVariables(node, value as Record<string, string>);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

/** An element of a drawing. */
export function svg(tag: string, props: Record<string, string | number>, ...children: Node[]): SVGElement {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

function setVariables(node: HTMLElement, values: Record<string, string>): void {
  for (const [name, value] of Object.entries(values)) node.style.setProperty(name, value);
}

function add(node: Node, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) add(node, child);
    else if (child instanceof Node) node.appendChild(child);
    else if (child !== null && child !== undefined && child !== false)
      node.appendChild(document.createTextNode(String(child)));
  }
}

export function fill(node: Element, ...children: Child[]): void {
  node.replaceChildren();
  add(node, children);
}

// Reading a style forces a layout, so colours are cached by scheme and name.
const cached = new Map<string, string>();
const dark = matchMedia("(prefers-color-scheme: dark)");

/** A colour of the style, by its name there. */
export function color(variable: string): string {
  const key = `${variable} ${dark.matches}`;
  let value = cached.get(key);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${variable}`).trim();
    cached.set(key, value);
  }
  return value;
}

/** A table whose first cell of each row names it. */
export function table(head: Child[], rows: Child[][], caption: string, left = 1): HTMLElement {
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((cell, i) => h("th", { scope: "col", class: i < left ? "" : "n" }, cell)))),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h("tr", {}, row.map((cell, i) => (i ? h("td", { class: i < left ? "" : "n" }, cell) : h("th", { scope: "row" }, cell)))),
        ),
      ),
    ),
  );
}

/** Name and value pairs. */
export function facts(pairs: [string, Child][]): HTMLElement {
  const present = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return h("dl", { class: "facts" }, present.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Calls after a period without further calls [ms] (debounce), unless the view was left. */
export function debounce(ms: number, call: () => void): () => void {
  let timer = 0;
  onLeave(() => clearTimeout(timer));
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(call, ms);
  };
}

/** An error in its four parts. */
export function errorNotice(error: unknown): HTMLElement {
  if (!(error instanceof Failure)) console.error(error); // a bug in the page, with its stack
  const problem = error instanceof Failure ? error.problem : { what: "The page failed", got: String(error) };
  return h("div", { class: "notice", role: "alert" },
    h("h1", {}, problem.what),
    facts([["where", problem.where ?? ""], ["got", problem.got ?? ""], ["allowed", problem.allowed ?? ""], ["do", problem.action ?? ""]]),
    h("p", {}, h("a", { href: "#/results" }, "To the list of results")));
}
