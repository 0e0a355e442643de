// A panel that follows the visible stretch of a run: it requests data only while it is open, and only
// if the stretch has changed.

import { type Picture } from "./api";
import { h } from "./dom";

export abstract class Following<T> {
  readonly node: HTMLDetailsElement;
  protected found: T | null = null;
  private seen: Picture | null = null;
  private told = "";

  constructor(title: string, ...body: Node[]) {
    this.node = h("details", { class: "panel", ontoggle: () => void this.tell() }, h("summary", {}, h("h2", {}, title)), ...body);
  }

  /** Follows the visible stretch. */
  of(picture: Picture): void {
    if (this.seen === null) this.begins(picture);
    this.seen = picture;
    void this.tell();
  }

  private async tell(): Promise<void> {
    const { seen } = this;
    if (!seen || !this.node.open) return;
    const stretch = `${seen.start} ${seen.stop}`;
    if (stretch === this.told) return;
    this.told = stretch;
    const found = await this.asked(seen.start, seen.stop).catch(() => null);
    if (this.told !== stretch || !found) return;
    this.found = found;
    this.show(found);
  }

  /** The first visible stretch. */
  protected begins(_picture: Picture): void {}
  protected abstract asked(from: number, to: number): Promise<T>;
  protected abstract show(found: T): void;
}
