/**
 * Builds the page that a master serves at its own address: `page.js`, `page.css` and `index.html`.
 *
 * node build-page.mjs [folder]
 */
import { copyFile, mkdir, rm } from 'node:fs/promises';
import process from 'node:process';

import { build } from 'esbuild';

const FOLDER = process.argv[2] ?? '../det_native/display/static/page';

await rm(FOLDER, { recursive: true, force: true }); // nothing of an earlier build stays
await mkdir(FOLDER, { recursive: true });
await build({
  entryPoints: { page: 'src/standalone/index.tsx' },
  bundle: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  minify: true,
  legalComments: 'none',
  logLevel: 'info',
  outdir: FOLDER
});
await copyFile('src/standalone/index.html', `${FOLDER}/index.html`);
