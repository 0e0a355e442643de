// Touch gestures on a figure: two fingers zoom, one moves sideways; vertical movement scrolls the page.

export interface Gestures {
  /** Zoom by a factor about this position on the screen. */
  zoom(factor: number, clientX: number): void;
  /** Move by a share of the width. */
  pan(share: number): void;
}

const LEAST = 6;

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
    if (Math.abs(moved) < LEAST) return;
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
