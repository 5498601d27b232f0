/** Colours of the page for what is drawn on a canvas. */

import type { RefObject } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';

import { watchTheme } from '../../shared/palette';
import { pictureColours } from '../charts/exportFiles';
import type { PlotColours } from './frame';

const BEFORE: PlotColours = {
  text: '#57606a',
  strong: '#1f2328',
  grid: '#e0e0e0',
  other: '#b8b8b8',
  trials: ['#0072b2', '#d55e00'],
  surface: '#ffffff',
  dark: false
};

/** The colours where an element stands; they change with the theme. */
export function usePlotColours(element: RefObject<HTMLElement>): PlotColours {
  const [colours, setColours] = useState(BEFORE);
  useLayoutEffect(() => {
    const read = () => {
      if (element.current !== null) {
        setColours(plotColours(element.current));
      }
    };
    read();
    return watchTheme(document, read);
  }, [element]);
  return colours;
}

export function plotColours(element: Element): PlotColours {
  const found = pictureColours(element);
  const surface = hexOf(found.surface);
  return { ...found, surface, dark: brightness(surface) < 0.5 };
}

/** `#ffffff` for `#fff` and `rgb(255, 255, 255)`; other forms are taken for white. */
function hexOf(colour: string): string {
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(colour);
  if (short) {
    return `#${short
      .slice(1)
      .map(digit => digit + digit)
      .join('')}`;
  }
  if (/^#[0-9a-f]{6}$/i.test(colour)) {
    return colour;
  }
  const parts = /^rgba?\(\s*(\d+)[\s,]+(\d+)[\s,]+(\d+)/.exec(colour);
  return parts
    ? `#${parts
        .slice(1, 4)
        .map(part => Number(part).toString(16).padStart(2, '0'))
        .join('')}`
    : '#ffffff';
}

function brightness(hex: string): number {
  const [red, green, blue] = [1, 3, 5].map(at =>
    parseInt(hex.slice(at, at + 2), 16)
  ) as [number, number, number];
  return (0.299 * red + 0.587 * green + 0.114 * blue) / 255;
}
