import { defineConfig } from 'vitest/config';

export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  test: {
    environment: 'node',
    include: ['tests/**/*.test.{ts,tsx}'],
    pool: 'vmThreads', // half the work of threads: jsdom is loaded once for each
    // Modules of ES that a CommonJS package requires cannot be loaded there: let packages give their other form.
    poolOptions: {
      vmThreads: { execArgv: ['--no-experimental-require-module'] }
    },
    restoreMocks: true
  }
});
