// A panel that follows the visible range of a run: it requests data only while it is open, and only
// if the range has changed.

import { type Picture } from "./api";
import { h } from "./dom";

export abstract class RangePanel<T> {
  readonly node: HTMLDetailsElement;
  protected data: T | null = null;
  private picture: Picture | null = null;
  private requested = "";

  constructor(title: string, ...body: Node[]) {
    this.node = h("details", { class: "panel", ontoggle: () => void this.refresh() }, h("summary", {}, h("h2", {}, title)), ...body);
  }

  /** Follows the visible range. */
  follow(picture: Picture): void {
    if (this.picture === null) this.started(picture);
    this.picture = picture;
    void this.refresh();
  }

  private async refresh(): Promise<void> {
    const { picture } = this;
    if (!picture || !this.node.open) return;
    const range = `${picture.start} ${picture.stop}`;
    if (range === this.requested) return;
    this.requested = range;
    const data = await this.request(picture.start, picture.stop).catch(() => null);
    if (this.requested !== range || !data) return;
    this.data = data;
    this.show(data);
  }

  /** The first visible range. */
  protected started(_picture: Picture): void {}
  protected abstract request(from: number, to: number): Promise<T>;
  protected abstract show(data: T): void;
}
