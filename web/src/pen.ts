// Drawing interface of figures: the same strokes on a canvas and in an SVG file.

export interface Pen {
  /** Pixels of the pen per pixel of the page. */
  readonly ratio: number;
  rect(x: number, y: number, w: number, h: number, color: string, alpha?: number): void;
  dot(x: number, y: number, radius: number, color: string): void;
  polygon(points: [number, number][], color: string): void;
  line(points: [number, number][], color: string, width: number, dash?: number[]): void;
  text(text: string, x: number, y: number, color: string, align?: "left" | "center" | "right", turned?: boolean): void;
  image(image: HTMLCanvasElement, x: number, y: number): void;
}

export class CanvasPen implements Pen {
  constructor(private readonly ctx: CanvasRenderingContext2D, readonly ratio: number) {}

  rect(x: number, y: number, w: number, h: number, color: string, alpha = 1): void {
    this.ctx.globalAlpha = alpha;
    this.ctx.fillStyle = color;
    this.ctx.fillRect(x, y, w, h);
    this.ctx.globalAlpha = 1;
  }

  dot(x: number, y: number, radius: number, color: string): void {
    const size = radius * this.ratio;
    this.ctx.fillStyle = color;
    if (radius < 2) this.ctx.fillRect(x - size, y - size, 2 * size, 2 * size);
    else {
      this.ctx.beginPath();
      this.ctx.arc(x, y, size, 0, 7);
      this.ctx.fill();
    }
  }

  polygon(points: [number, number][], color: string): void {
    this.ctx.beginPath();
    for (const [x, y] of points) this.ctx.lineTo(x, y);
    this.ctx.fillStyle = color;
    this.ctx.fill();
  }

  line(points: [number, number][], color: string, width: number, dash: number[] = []): void {
    this.ctx.beginPath();
    let open = false;
    for (const [x, y] of points) {
      if (!Number.isFinite(y)) open = false;
      else if (open) this.ctx.lineTo(x, y);
      else {
        this.ctx.moveTo(x, y);
        open = true;
      }
    }
    this.ctx.strokeStyle = color;
    this.ctx.lineWidth = width * this.ratio;
    this.ctx.lineJoin = "round";
    this.ctx.setLineDash(dash.map((each) => each * this.ratio));
    this.ctx.stroke();
    this.ctx.setLineDash([]);
  }

  text(text: string, x: number, y: number, color: string, align: CanvasTextAlign = "left"): void {
    this.ctx.fillStyle = color;
    this.ctx.textAlign = align;
    this.ctx.textBaseline = "alphabetic";
    this.ctx.font = `${12 * this.ratio}px ${FONT}`;
    this.ctx.fillText(text, x, y);
  }

  image(image: HTMLCanvasElement, x: number, y: number): void {
    this.ctx.drawImage(image, x, y);
  }
}

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial, sans-serif';

export class SvgPen implements Pen {
  readonly ratio = 1;
  private readonly parts: string[] = [];

  rect(x: number, y: number, w: number, h: number, color: string, alpha = 1): void {
    this.parts.push(`<rect x="${r(x)}" y="${r(y)}" width="${r(w)}" height="${r(h)}" fill="${color}"${alpha < 1 ? ` fill-opacity="${r(alpha)}"` : ""}/>`);
  }

  dot(x: number, y: number, radius: number, color: string): void {
    this.parts.push(`<circle cx="${r(x)}" cy="${r(y)}" r="${radius}" fill="${color}"/>`);
  }

  polygon(points: [number, number][], color: string): void {
    this.parts.push(`<polygon points="${points.map(([x, y]) => `${r(x)},${r(y)}`).join(" ")}" fill="${color}"/>`);
  }

  line(points: [number, number][], color: string, width: number, dash: number[] = []): void {
    let path = "";
    let open = false;
    for (const [x, y] of points) {
      if (!Number.isFinite(y)) open = false;
      else {
        path += `${open ? "L" : "M"}${r(x)} ${r(y)}`;
        open = true;
      }
    }
    if (path) this.parts.push(`<path d="${path}" fill="none" stroke="${color}" stroke-width="${width}"${dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : ""}/>`);
  }

  text(text: string, x: number, y: number, color: string, align: "left" | "center" | "right" = "left", turned = false): void {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const turn = turned ? ` transform="rotate(-90 ${r(x)} ${r(y)})"` : "";
    this.parts.push(`<text x="${r(x)}" y="${r(y)}" fill="${color}" text-anchor="${anchor}"${turn}>${escaped(text)}</text>`);
  }

  image(image: HTMLCanvasElement, x: number, y: number): void {
    this.parts.push(`<image x="${r(x)}" y="${r(y)}" width="${image.width}" height="${image.height}" href="${image.toDataURL("image/png")}"/>`);
  }

  file(width: number, height: number, title: string, background: string): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family='${FONT.replaceAll("'", "")}' font-size="12" role="img"><title>${escaped(title)}</title><rect width="100%" height="100%" fill="${background}"/>${this.parts.join("\n")}</svg>\n`;
  }
}

function r(value: number): string {
  return String(Math.round(value * 100) / 100);
}

// Escapes names, since an SVG file is opened without our security policy.
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "�");
}
