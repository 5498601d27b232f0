/** Saves charts as files. */

import { readPalette } from '../../shared/palette';
import { type PictureColours, toSvg } from './exportSvg';
import type { CurveChartProps, Zoom } from './series';

/** Pictures have twice the pixels, for screens and slides. */
const PIXELS = 2;
const SIZE = { width: 800, height: 380 };

/** Colours of a picture: those of the page, as it is now. */
export function pictureColours(element: Element): PictureColours {
  const style = getComputedStyle(element);
  const colour = (name: string, otherwise: string) =>
    style.getPropertyValue(name).trim() || otherwise;
  return {
    ...readPalette(element),
    surface: colour('--det-surface', '#ffffff'),
    strong: colour('--det-text', '#1f2328')
  };
}

/** The chart as it is drawn now, in vectors. */
export function svgFile(
  chart: CurveChartProps,
  zoom: Zoom,
  near: Element
): Blob {
  const { text } = toSvg(chart, zoom, pictureColours(near), SIZE);
  return new Blob([text], { type: 'image/svg+xml' });
}

/** The chart as it is drawn now, in pixels; rejects where the browser cannot draw it. */
export function pngFile(
  chart: CurveChartProps,
  zoom: Zoom,
  near: Element
): Promise<Blob> {
  const { text, width, height } = toSvg(
    chart,
    zoom,
    pictureColours(near),
    SIZE
  );
  return pngOfSvg(text, width, height);
}

/** An SVG file in pixels; rejects where the browser cannot draw it. */
export async function pngOfSvg(
  text: string,
  width: number,
  height: number
): Promise<Blob> {
  const picture = new Image();
  picture.width = width;
  picture.height = height;
  // Not as a blob: the policy of a page takes data for pictures, but not always blobs.
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await picture.decode();
  const canvas = document.createElement('canvas');
  canvas.width = width * PIXELS;
  canvas.height = height * PIXELS;
  const context = canvas.getContext('2d');
  if (context === null) {
    throw new Error('This browser cannot draw the picture.');
  }
  context.scale(PIXELS, PIXELS);
  context.drawImage(picture, 0, 0, width, height);
  return new Promise((resolve, reject) =>
    canvas.toBlob(
      blob =>
        blob === null
          ? reject(new Error('This browser cannot make the picture.'))
          : resolve(blob),
      'image/png'
    )
  );
}

/** A name that every file system takes. */
export function fileNameOf(title: string): string {
  const plain = title.replace(/[^\p{L}\p{N}._-]+/gu, '_').replace(/^[._]+/, '');
  return [...plain].slice(0, 80).join('') || 'chart';
}
