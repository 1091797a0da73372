// The coordinator's page in a real browser: what it shows, what a person does there by mouse and keyboard, what people
// who cannot see it are told, and what another page in the same browser can do to it: nothing.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { BIN, CACHE, CHROMIUM, PYTHON, ROOT, freePort, playwright } from './place.mjs';
import { commandOf, naming } from './processes.mjs';

/** The pictures of docs/extension.md and docs/operations.md, drawn anew when this is set. */
const PICTURES = process.env.BATON_PICTURES ? path.join(ROOT, 'docs/images') : undefined;
const AXE = createRequire(path.join(CACHE, 'vscode/pw/')).resolve('axe-core/axe.min.js');

let world, client, browser, page;

/** A Baton with headless windows, and nothing of an editor. */
class World {
    static async start() {
        const world = new World();
        world.run = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-page-'));
        world.port = await freePort();
        world.windows = [];
        return world;
    }

    environment() {
        const entries = Object.entries(process.env).filter(([name]) => !name.startsWith('BATON_'));
        const own = { BATON_HOME: path.join(this.run, 'state'), BATON_PORT: String(this.port), BATON_PYTHON: PYTHON, HOME: this.run };
        return { ...Object.fromEntries(entries), ...own };
    }

    baton(...args) {
        const done = spawnSync(path.join(BIN, 'baton'), args, { env: this.environment(), encoding: 'utf8', timeout: 30_000 });
        assert.equal(done.status, 0, `baton ${args}: ${done.stderr}`);
        return done.stdout.trim();
    }

    status() {
        return JSON.parse(this.baton('status', '--json'));
    }

    async window(name) {
        const folder = path.join(this.run, name);
        fs.mkdirSync(folder);
        const child = spawn(path.join(BIN, 'baton'), ['window', folder], { env: this.environment(), stdio: 'ignore' });
        this.windows.push(child);
        const isThere = () => spawnSync(path.join(BIN, 'baton'), ['windows', '--json'], { env: this.environment(), encoding: 'utf8' });
        await until(`${name} registers`, async () => JSON.parse(isThere().stdout || '[]').some((known) => known.name === name));
        return child;
    }

    async end() {
        for (const child of this.windows.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
            child.kill();
            await once(child, 'exit');
        }
        this.baton('down');
        await until('nothing is left', async () => naming(this.run).length === 0, 15_000, async () => naming(this.run).map(commandOf));
        fs.rmSync(this.run, { recursive: true });
    }
}

/** A browser with the page open in it. */
async function show(options = {}) {
    const context = await browser.newContext({ viewport: { width: 1180, height: 980 }, ...options });
    const shown = await context.newPage();
    shown.on('pageerror', (error) => shown.complaints.push(String(error)));
    shown.on('console', (message) => message.type() === 'error' && shown.complaints.push(message.text()));
    shown.complaints = [];
    await shown.goto(world.baton('open', '--print'));
    await shown.locator('#windows tr').first().waitFor();
    return shown;
}

/** What stands in the rows of a table, cell by cell. */
const rows = (id, shown = page) => shown.locator(`#${id} tr`).evaluateAll((found) =>
    found.map((row) => [...row.cells].map((cell) => cell.innerText.trim().replace(/\s+/g, ' '))));

before(async () => {
    world = await World.start();
    await world.window('shop');
    await world.window('weather');
    await world.window('old');
    world.baton('stop', 'old');
    browser = await playwright().chromium.launch({ executablePath: CHROMIUM, headless: true, chromiumSandbox: false });
    client = await connect(world);
    page = await show();
});

after(async () => {
    client?.close();
    await browser?.close();
    await world?.end();
});

test('somebody who knows nothing sees which window is live, and why another is not', async () => {
    assert.equal(await page.locator('#summary').innerText(), 'shop is live: no other window was live');
    const shown = (await rows('windows')).map(([state, window, why]) => [state, window.split(' ')[0], why]);
    assert.deepEqual(shown, [
        ['off', 'old', 'you stopped it'],
        ['live', 'shop', 'no other window was live'],
        ['standby', 'weather', 'shop is live'],
    ]);
    const story = await page.locator('#story li span:first-of-type').allInnerTexts();
    assert.ok(story.includes('shop became live: no other window was live'), story);
    assert.equal(story[0], 'old is off: you stopped it');
});

test('calls are shown as they come, with their window, client, and outcome; and are found by a word', async () => {
    await client.call('list_windows');
    await client.call('debug', { action: 'sessions' });
    await client.call('debug', { action: 'stop', session_id: 'none' });
    await until('three calls are shown', async () => (await rows('calls')).length === 3, 10_000, () => rows('calls'));
    const shown = (await rows('calls')).reverse().map(([, tool, window, name, , outcome]) => [tool, window, name, outcome]);
    assert.deepEqual(shown.map(([tool, , name]) => [tool, name]), ['list_windows', 'debug', 'debug'].map((tool) => [tool, 'tests-sdk-1']));
    assert.deepEqual(shown.slice(0, 2).map(([, window, , outcome]) => [window, outcome]), [['', 'ok'], ['shop', 'ok']]);
    assert.notEqual(shown[2][3], 'ok', 'an error is shown as one');
    await page.locator('#filter').fill('LIST_');
    await until('one call fits', async () => (await rows('calls')).length === 1);
    await page.locator('#filter').fill('');
    await until('the clients are counted', async () => (await rows('clients'))[0]?.[1] === '3', 10_000, () => rows('clients'));
});

/** What a client has in `shop`: sessions with breakpoints, and adapters. */
const held = async () => (await rows('windows')).find(([, window]) => window.startsWith('shop')).slice(3, 5);

test('what a client debugs is shown with its breakpoints and its adapter', async () => {
    fs.writeFileSync(path.join(world.run, 'shop', 'main.py'), 'price = 3\nprint(price)\n');
    await client.call('debug', { action: 'set_breakpoint', file: 'main.py', line: 2 });
    await until('the breakpoint is shown', async () => (await held())[0] === 'main.py:2', 10_000, held);
    await client.call('debug', { action: 'launch', program: 'main.py', timeout: 60 });
    await until('session and adapter are shown', async () => /^main\.py.* main\.py:2$/.test((await held())[0]) && (await held())[1] === 'debugpy', 10_000, held);
});

const logLines = async (shown = page) => (await rows('logs', shown)).map((cells) => cells[3]);

test('the log is shown when it is opened, by level, and about one call', async () => {
    assert.equal((await rows('logs')).length, 0, 'nothing is asked for before');
    await page.locator('#logs-part summary').click();
    await until('the log is there', async () => (await logLines()).some((line) => line.includes('the coordinator is ready')), 10_000, logLines);
    await page.locator('#level').selectOption('error');
    await until('nothing is that bad', async () => (await logLines()).length === 0 && await page.locator('#no-logs').isVisible(), 10_000, logLines);
    await page.locator('#level').selectOption('info');
    await until('the log is there again', async () => (await logLines()).length > 1, 10_000, logLines);
    const launch = page.locator('#calls tr').first().locator('button');
    const id = await launch.innerText();
    await launch.click();
    const isOfCall = (lines) => lines.length > 0 && lines.every((line) => line.includes(`call=${id}`));
    await until('only lines of the call are there', async () => isOfCall(await logLines()), 10_000, logLines);
    await page.locator('#logs-call').click();
    await until('all lines are there again', async () => (await logLines()).some((line) => line.includes('the coordinator is ready')), 10_000, logLines);
    await page.locator('#logs-filter').fill('COORDINATOR is ready');
    await until('one line fits', async () => (await logLines()).length === 1, 10_000, logLines);
    await page.locator('#logs-filter').fill('');
    await page.locator('#logs-part summary').click();
});

test('an answer that comes after what was asked for later is not shown', async () => {
    // What asks for errors is kept back until all lines have been shown.
    const kept = Promise.withResolvers();
    const given = Promise.withResolvers();
    await page.route(/\/logs\?level=error/, async (route) => {
        await kept.promise;
        await route.continue();
    });
    page.on('requestfinished', (request) => {
        if (request.url().includes('level=error')) {
            given.resolve();
        }
    });
    await page.locator('#logs-part summary').click();
    await page.locator('#level').selectOption('error');
    await page.locator('#level').selectOption('info');
    const isAll = async () => (await logLines()).some((line) => line.includes('the coordinator is ready'));
    await until('the log is there', isAll, 10_000, logLines);
    kept.resolve();
    await given.promise;
    // Whatever the page does with the answer, it does before it answers this.
    await page.evaluate(() => new Promise((resolve) => { setTimeout(resolve, 100); }));
    assert.ok(await isAll(), 'what was asked for last is shown');
    await page.unroute(/\/logs\?level=error/);
    await page.locator('#logs-part summary').click();
});

test('what calls are called with is shown only while the person wants it, without secrets', async () => {
    const first = async () => (await rows('calls'))[0][1];
    const call = () => client.call('debug', { action: 'stop', session_id: 'nobody', env: { API_KEY: 'canary' } });
    await call();
    await until('the tool alone is shown', async () => (await first()) === 'debug', 10_000, first);
    world.baton('settings', 'show_arguments', 'true');
    await call();
    await until('its arguments are shown', async () => (await first()).includes('"session_id":"nobody"'), 10_000, first);
    assert.doesNotMatch(await page.locator('#calls').innerText(), /canary/);
    world.baton('settings', 'show_arguments', 'false');
    await call();
    await until('they are not shown any more', async () => (await first()) === 'debug', 10_000, first);
});

test('the events of streams are shown byte by byte while they are kept', async () => {
    const texts = async () => (await rows('streams')).map((cells) => cells[3]);
    await page.locator('#streams-part summary').click();
    await until('nothing is kept', async () => page.locator('#no-streams').isVisible());
    await page.locator('#keep').click();
    await until('events are kept', async () => (await page.locator('#keep').getAttribute('aria-pressed')) === 'true');
    world.baton('settings', 'toolsets', 'debug,code');
    await until('the event is there', async () => (await texts()).some((text) => text.includes('notifications/tools/list_changed')), 10_000, texts);
    const told = JSON.parse(world.baton('raw-sse', '--json').split('\n')[0]);
    assert.equal(await page.locator('#streams tr').last().locator('td').last().textContent(), told.text, 'as the command tells it');
    await page.locator('#streams-filter').fill('no such text');
    await until('none fits', async () => (await texts()).length === 0);
    await page.locator('#streams-filter').fill('');
    await page.locator('#keep').click();
    await until('they are forgotten', async () => (await texts()).length === 0);
    assert.match(world.baton('raw-sse'), /^$/);
    world.baton('settings', 'toolsets', 'debug,code,windows');
    await page.locator('#streams-part summary').click();
});

test('a person makes another window live by keyboard alone, and stops it by mouse', async () => {
    await page.locator('#windows').getByRole('button', { name: 'Make live: weather' }).focus();
    await page.keyboard.press('Enter');
    await until('weather is live', async () => (await page.locator('#summary').innerText()) === 'weather is live: you chose it');
    assert.equal(world.status().windows.find(({ name }) => name === 'weather').state, 'live');
    await page.getByRole('button', { name: 'Stop: weather' }).click();
    await until('nobody is live', async () => (await page.locator('#summary').innerText()).startsWith('No window is live'));
    assert.equal(world.status().live, null);
    await page.getByRole('button', { name: 'Make live: shop' }).click();
    await until('shop is live', async () => (await page.locator('#summary').innerText()) === 'shop is live: you chose it');
});

test('a window that closes is gone from the page, and the story says so', async () => {
    const child = await world.window('<b>bold&amp;');
    await until('its name is text', async () => (await rows('windows')).some(([, name]) => name.startsWith('<b>bold&amp;')));
    child.kill();
    await until('it is gone', async () => (await rows('windows')).length === 3);
    await until('the story tells it', async () => (await page.locator('#story').innerText()).includes('<b>bold&amp; closed'));
});

for (const [colorScheme, locale, summary] of [['light', 'en-US', 'shop is live'], ['dark', 'en-US', 'shop is live'], ['light', 'zh-CN', 'shop 处于活动状态']]) {
    test(`axe finds nothing in ${colorScheme}, ${locale}`, async () => {
        const shown = await show({ colorScheme, locale });
        await until('the calls are there', async () => (await rows('calls', shown)).length > 0);
        assert.ok((await shown.locator('#summary').innerText()).startsWith(summary));
        if (locale === 'zh-CN') {
            const words = await shown.locator('body').innerText();
            assert.doesNotMatch(words, /you |live|standby|Show|Windows/, 'all of it is Chinese');
        }
        // The page itself lets nothing of others run: this goes in beside it.
        const session = await shown.context().newCDPSession(shown);
        const { frameTree } = await session.send('Page.getFrameTree');
        const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id });
        const run = async (expression) => {
            const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, contextId, awaitPromise: true, returnByValue: true });
            assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
            return result.value;
        };
        if (PICTURES && locale === 'en-US') {
            await shown.screenshot({ path: path.join(PICTURES, `page-${colorScheme}.png`) });
        }
        await shown.locator('#streams-part summary').click();
        await shown.locator('#logs-part summary').click();
        await until('the log is there', async () => (await logLines(shown)).length > 0);
        await run(fs.readFileSync(AXE, 'utf8'));
        const found = await run('axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))');
        assert.deepEqual(found, []);
        assert.deepEqual(shown.complaints, []);
        await shown.context().close();
    });
}

test('what a client has ended is gone from the page', async () => {
    await client.call('debug', { action: 'remove_breakpoint', file: 'main.py', line: 2 });
    await client.call('debug', { action: 'terminate' });
    await until('all of it is gone', async () => (await held()).join() === ',', 10_000, held);
});

test('another page in the same browser reads nothing and does nothing', async () => {
    const target = new URL(page.url()).origin;
    const { id } = world.status().windows.find(({ name }) => name === 'weather');
    const script = `
        const results = {};
        const tried = (name, promise) => promise.then((value) => { results[name] = value; }, (error) => { results[name] = error.name; });
        const read = (options) => fetch('${target}/', options).then(async (answer) => answer.type + ' ' + (await answer.text()).includes('baton-form'));
        const take = (options) => fetch('${target}/windows/${id}/take', { method: 'POST', body: '{}', credentials: 'include', ...options }).then((answer) => answer.type);
        const element = (name, attribute, path) => new Promise((resolve, reject) => {
            const made = document.createElement(name);
            made.onload = () => resolve('loaded');
            made.onerror = () => reject(new Error('no'));
            made[attribute] = '${target}' + path;
            document.body.append(made);
        });
        const stream = new Promise((resolve, reject) => {
            const source = new EventSource('${target}/events', { withCredentials: true });
            source.onopen = () => resolve('open');
            source.onerror = () => { source.close(); reject(new Error('no')); };
        });
        window.done = Promise.all([
            tried('read', read({ credentials: 'include' })),
            tried('read opaque', read({ credentials: 'include', mode: 'no-cors' })),
            tried('take', take({ headers: { 'content-type': 'application/json', 'baton-form': '0' } })),
            tried('take opaque', take({ mode: 'no-cors' })),
            tried('script', element('script', 'src', '/page.js')),
            tried('image', element('img', 'src', '/icon.svg')),
            tried('stream', stream),
        ]).then(() => results);`;
    // On the same machine, and under the name that its cookies would go to if they knew no ports.
    const evil = http.createServer((request, answer) => {
        evil.cookies.push(request.headers.cookie);
        answer.setHeader('content-type', 'text/html');
        answer.end(request.url === '/' ? `<!doctype html><body><script>${script}</script>` : '');
    });
    evil.cookies = [];
    await new Promise((resolve) => evil.listen(0, '127.0.0.1', resolve));
    const { port } = evil.address();
    try {
        for (const origin of [`http://127.0.0.1:${port}`, `http://evil.localhost:${port}`]) {
            const other = await page.context().newPage();
            await other.goto(origin);
            const results = await other.evaluate('done');
            assert.deepEqual(results, {
                read: 'TypeError', 'read opaque': 'opaque false', take: 'TypeError', 'take opaque': 'opaque',
                script: 'Error', image: 'Error', stream: 'Error',
            });
            const framed = await other.evaluate((url) => new Promise((resolve) => {
                const frame = document.createElement('iframe');
                frame.onload = () => resolve(frame.contentDocument === null);
                frame.src = url;
                document.body.append(frame);
            }), `${target}/`);
            assert.equal(framed, true);
            assert.equal(await other.frames().at(-1).locator('#windows').count(), 0, 'no frame shows it');
            await other.close();
        }
    } finally {
        evil.close();
    }
    assert.ok(evil.cookies.every((cookie) => cookie === undefined), 'no cookie went to another server');
    assert.notEqual(world.status().windows.find(({ name }) => name === 'weather').state, 'live');
    assert.deepEqual(page.complaints, []);
});

test('a coordinator that is replaced closes the page in plain words', async () => {
    world.baton('down');
    world.baton('up');
    await until('the page says so', async () => (await page.locator('#trouble').innerText()).includes('Run `baton open` for a new one'), 20_000, () => page.locator('#trouble').innerText());
    assert.equal(await page.locator('button:enabled').count(), 0);
});
