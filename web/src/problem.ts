// Shows an error in its four parts.

import { Failure } from "./api";
import { facts, h } from "./dom";

export function errorNotice(error: unknown): HTMLElement {
  if (!(error instanceof Failure)) console.error(error); // a bug in the page, with its stack
  const problem = error instanceof Failure ? error.problem : { what: "The page failed", got: String(error) };
  return h("div", { class: "notice", role: "alert" },
    h("h1", {}, problem.what),
    facts([["where", problem.where ?? ""], ["got", problem.got ?? ""], ["allowed", problem.allowed ?? ""], ["do", problem.action ?? ""]]),
    h("p", {}, h("a", { href: "#/results" }, "To the list of results")));
}
