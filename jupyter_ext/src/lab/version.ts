/** Version of this front end; a test compares it with package.json's. */
export const VERSION = '0.1.0';
