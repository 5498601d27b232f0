/**
 * Builds the live view under a cell, `live.js` and `live.css`: a notebook's page loads both whole, so what no view of
 * ours uses of uPlot, eventsource-parser and openapi-fetch is left out.
 *
 * node build-widget.mjs [folder]
 */
import { readFile } from 'node:fs/promises';
import process from 'node:process';

import { build } from 'esbuild';

const FOLDER = process.argv[2] ?? '../det_native/display/static';

/**
 * Shapes of lines besides the straight one, which uPlot hangs on itself, dates on axes, its own legend, scales that are
 * neither linear nor logarithmic, its ticks of those that are (axes.ts has ours) and all of powers of two, charts with
 * an x for each line, what joins tables and other helps for its users: no bundler can drop them. Each is a pattern and what stands in its place.
 */
const UNUSED = [
  [/\(paths\.stepped\s*= stepped\);/, ''],
  [/\(paths\.bars\s*= bars\);/, ''],
  [/\(paths\.spline\s*= monotoneCubic\);/, ''],
  [/uPlot\.join\s*= join;/, ''],
  [/uPlot\.(?:rangeAsinh|orient|fmtNum|addGap)\s*= \w+;/, ''],
  [/uPlot\.fmtDate\s*= fmtDate;/, ''],
  [/uPlot\.tzDate\s*= tzDate;/, ''],
  [/let isTime = [^;]*;/, ''],
  [/const showLegend = [^;]*;/, ''],
  [/sc\.distr == 3 \? logAxisSplits :/, ''],
  [/sc\.distr == 3 && sc\.log == 2 \? log2AxisValsFilt :/, ''],
  [/(?:\w+\.)?distr == (?:2|4|100)(?!\d)/, 'false'],
  [/\bmode == 2\b/, 'false'],
  [/\bmode == 1\b/, 'true'],
  [/const \[ timeIncrs\w+, .* \] = genTimeStuffs\(.*\);/, ''],
  [
    /const _(?:tzDate|fmtDate|time(?:AxisSplits|AxisVals|SeriesVal))\s*= .*;/,
    ''
  ]
];
/** Rules for uPlot's own legend and title. */
const UNUSED_RULES = [
  [/[^{}]*\.u-(?:legend|inline|series|title)\b[^{}]*\{[^}]*\}/, '']
];

/** Of eventsource-parser: words for what is wrong in a stream or a call, marks of byte order, a new beginning. */
const UNUSED_OF_PARSER = [
  [/if \(typeof callbacks == "function"\)\s+throw new TypeError\([^;]*\);/, ''],
  [/onError\(\s*new ParseError\([^]*?\)\s*\)/, 'void 0'],
  [/isFirstChunk \? newChunk\.replace\(.*?\) : newChunk/, 'newChunk'],
  [/function reset\([^]*?\n {2}\}(?=\n)/, ''],
  [/(?<=return \{ feed), reset/, '']
];

/** Of openapi-fetch: middleware, methods that the master has not, parameters in other styles than its own. */
const UNUSED_OF_CLIENT = [
  [/finalMiddlewares\.length/, 'false'],
  [/if \(localBaseUrl\) \{[^}]*\}/, ''],
  [/if \(requestQuerySerializer\) \{[^]*?\n {4}\}\n/, ''],
  [/ \|\| defaultPathSerializer/, ''],
  [
    /if \(typeof value === "object"\) \{\s+search\.push\([^]*?continue;\s+\}/,
    ''
  ],
  [/request\(method, url, init\) \{[^]*?\n {4}\},/, ''],
  [/(?:OPTIONS|HEAD|TRACE)\(url, init\) \{[^]*?\n {4}\},/, ''],
  [/use\(\.\.\.middleware\) \{[^]*?\n {4}\},/, ''],
  [/eject\(\.\.\.middleware\) \{[^]*?\n {4}\}\n/, '']
];

/** Put something in a place; another version, that does not have it, has to be looked at anew. */
function replaced(path, text, [pattern, replacement]) {
  if (!pattern.test(text)) {
    throw new Error(`${path} has no ${pattern}: adapt build-widget.mjs to it.`);
  }
  return text.replaceAll(new RegExp(pattern, 'g'), replacement);
}

/** Changes a file of a library as it is read. */
function change(build, filter, loader, changes) {
  build.onLoad({ filter }, async ({ path }) => {
    const text = await readFile(path, 'utf8');
    const contents = changes.reduce(
      (changed, each) => replaced(path, changed, each),
      text
    );
    return { contents, loader };
  });
}

await build({
  entryPoints: ['src/widget/index.ts'],
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  mangleProps: /^_[a-z]/,
  legalComments: 'none',
  define: { isTime: 'false', showLegend: 'false' }, // what uPlot asks of a scale and its options, see UNUSED
  logLevel: 'info',
  outfile: `${FOLDER}/live.js`,
  plugins: [
    {
      name: 'small-libraries',
      setup(build) {
        change(build, /uPlot\.esm\.js$/, 'js', UNUSED);
        change(build, /uPlot\.min\.css$/, 'css', UNUSED_RULES);
        const parser = /eventsource-parser\/dist\/index\.js$/;
        change(build, parser, 'js', UNUSED_OF_PARSER);
        const client = /openapi-fetch\/dist\/index\.mjs$/;
        change(build, client, 'js', UNUSED_OF_CLIENT);
      }
    }
  ]
});
