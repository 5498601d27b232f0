import { defineConfig } from 'vitest/config';

const PAGES = 'tests/workspace/**/*.test.tsx';

export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  test: {
    environment: 'node',
    restoreMocks: true,
    projects: [
      {
        extends: true,
        test: {
          name: 'parts',
          include: ['tests/**/*.test.{ts,tsx}'],
          exclude: [PAGES],
          pool: 'vmThreads' // half the work of threads: jsdom is loaded once for each
        }
      },
      {
        extends: true,
        // What finds elements by roles has a module that vmThreads cannot load.
        test: { name: 'pages', include: [PAGES], pool: 'threads' }
      }
    ]
  }
});
