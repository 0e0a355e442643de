// The keys of the explorer: `?`, or the button at the head of the page, lists them.

import { fill, h, table } from "./dom";

const KEYS: [string, string[], string][] = [
  ["everywhere", ["?"], "list the keys"],
  ["everywhere", ["Tab", "Enter"], "go to the next element, and activate it"],
  ["response times of a run", ["+", "−"], "zoom in and out, around the selected I/O"],
  ["response times of a run", ["←", "→"], "move"],
  ["response times of a run", ["0"], "show the whole run"],
  ["response times of a run", ["Enter"], "select the slowest visible I/O"],
  ["response times of a run", ["n", "p"], "select the next or the previous slow I/O"],
];

const dialog = h("dialog", { "aria-label": "Keys" });

function show(): void {
  if (dialog.open) return;
  fill(dialog, h("h2", {}, "Keys"),
    table(["where", "key", "action"], KEYS.map(([where, keys, action]) => [where, keys.map((key) => [h("kbd", {}, key), " "]), action]), "Keys of the explorer", 3),
    h("p", { class: "quiet" }, "The keys of a run act if its picture has the focus: press Tab, or click it."),
    h("form", { method: "dialog" }, h("button", { type: "submit", class: "main" }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}

/** The button that lists the keys; `?` does the same outside of text fields. */
export function help(): HTMLElement {
  addEventListener("keydown", (event) => {
    const { target } = event;
    const writes = target instanceof HTMLInputElement && !["checkbox", "radio", "range"].includes(target.type);
    if (event.key === "?" && !writes && !event.ctrlKey && !event.metaKey && !event.altKey) show();
  });
  addEventListener("hashchange", () => dialog.close());
  return h("button", { type: "button", class: "help", "aria-label": "Keys", title: "Keys (?)", onclick: show }, "?");
}
