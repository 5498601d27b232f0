import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    environment: 'node',
    include: ['tests/**/*.test.ts'],
    pool: 'vmThreads', // half the work of threads: jsdom is loaded once for each
    restoreMocks: true
  }
});
