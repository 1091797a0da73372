// Bundles the extension into one file.
import { build } from 'esbuild';

await build({
    entryPoints: ['src/extension.ts'],
    outfile: 'dist/extension.js',
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'cjs',
    target: 'node18',
    external: ['vscode'],
    // What is thrown names its line.
    sourcemap: process.argv.includes('--map') ? 'inline' : false,
    legalComments: 'none',
});
