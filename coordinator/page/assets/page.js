// The page: draws what the coordinator tells, and sends what the person wants. Whatever comes is text, never markup.
'use strict';

const ENGLISH = {
  windows: 'Windows', story: 'What happened', calls: 'Tool calls', clients: 'AI clients',
  state: 'State', window: 'Window', why: 'Why', sessions: 'Debug sessions, breakpoints', actions: 'Actions',
  programs: 'Adapters, servers', more: '{0} more', died: 'died: {0}', times: '{0} times {1}',
  time: 'Time', tool: 'Tool', client: 'Client', took: 'Took', outcome: 'Outcome', tokens: 'Tokens, about', id: 'ID',
  count: 'Calls', last: 'Last call', filter: 'Filter', pause: 'Pause', older: 'Show older calls',
  noWindows: 'No windows. Open a folder in VS Code with the Baton extension, or run `baton window DIR`.',
  noCalls: 'No calls yet.',
  noClients: 'No AI client has called yet. `baton config CLIENT --write` connects one.',
  live: 'live', standby: 'standby', off: 'off', silent: 'not responding',
  take: 'Make live', stop: 'Stop', restart: 'Restart',
  takeTip: 'Tool calls go to {0} from now on', stopTip: 'Stop {0}; it stays off until you start it',
  restartTip: 'Restart the agent of {0}; its debug sessions end',
  isLive: '{0} is live: {1}', isAwaited: 'Waiting for {0} to come back', nobody: 'No window is live',
  nobodyWhy: 'No window is live. Press "Make live" on one.',
  silentWhy: 'its agent is not responding; restart it',
  about: 'Version {0}, process {1}, since {2}',
  opened: '{0} opened', closed: '{0} closed', becameLive: '{0} became live: {1}', becameStandby: '{0} yields: {1}',
  becameOff: '{0} is off: {1}', becameSilent: '{0} stopped responding', answers: '{0} responds again',
  byUser: 'yours', running: 'running', held: 'waits for a window', ok: 'ok', passedOn: 'passed to the new coordinator',
  lost: 'The coordinator is not responding. This page tries again.',
  over: 'This page is closed: the coordinator was restarted, or the page is too old. Run `baton open` for a new one.',
  failed: '{0}: {1}',
  logs: 'Logs', level: 'Level', process: 'Of', line: 'Line', noLogs: 'No lines.', baton: 'coordinator', agent: 'window',
  logsOf: 'Call {0}: show all lines', showLogs: 'Show what is logged about call {0}',
  streams: 'Raw streams', stream: 'Stream', event: 'Event', keep: 'Keep events', noStreams: 'No events.',
  streamsNote: 'The events that go to clients, byte by byte: the last thousand, while they are kept. They hold source text and values.',
};
const CHINESE = {
  windows: '窗口', story: '发生了什么', calls: '工具调用', clients: 'AI 客户端',
  state: '状态', window: '窗口', why: '原因', sessions: '调试会话与断点', actions: '操作',
  programs: '适配器与服务器', more: '另有 {0} 个', died: '异常退出：{0}', times: '{1}，{0} 个',
  time: '时间', tool: '工具', client: '客户端', took: '用时', outcome: '结果', tokens: '约合令牌数', id: 'ID',
  count: '调用次数', last: '最近一次', filter: '筛选', pause: '暂停', older: '显示更早的调用',
  noWindows: '没有窗口。请在装有 Baton 扩展的 VS Code 中打开文件夹，或运行 `baton window DIR`。',
  noCalls: '还没有调用。',
  noClients: '还没有 AI 客户端调用过。用 `baton config CLIENT --write` 连接一个。',
  live: '活动', standby: '待命', off: '关闭', silent: '无响应',
  take: '设为活动', stop: '停止', restart: '重启',
  takeTip: '此后工具调用会发往 {0}', stopTip: '停止 {0}；在您启动它之前一直关闭',
  restartTip: '重启 {0} 的代理；其调试会话会结束',
  isLive: '{0} 处于活动状态：{1}', isAwaited: '正在等待 {0} 回来', nobody: '没有活动窗口',
  nobodyWhy: '没有活动窗口。请在某个窗口上按“设为活动”。',
  silentWhy: '其代理没有响应；请重启它',
  about: '版本 {0}，进程 {1}，启动于 {2}',
  opened: '{0} 已打开', closed: '{0} 已关闭', becameLive: '{0} 成为活动窗口：{1}', becameStandby: '{0} 让位：{1}',
  becameOff: '{0} 已关闭：{1}', becameSilent: '{0} 停止响应', answers: '{0} 恢复响应',
  byUser: '您的', running: '运行中', held: '正在等待窗口', ok: '成功', passedOn: '已交给新的协调器',
  lost: '协调器没有响应。此页面会重试。',
  over: '此页面已关闭：协调器已重启，或页面过旧。请运行 `baton open` 打开新页面。',
  failed: '{0}：{1}',
  logs: '日志', level: '级别', process: '来源', line: '内容', noLogs: '没有日志行。', baton: '协调器', agent: '窗口',
  logsOf: '调用 {0}：显示所有行', showLogs: '显示关于调用 {0} 的日志',
  streams: '原始流', stream: '流', event: '事件', keep: '保留事件', noStreams: '没有事件。',
  streamsNote: '逐字节显示发往客户端的事件：保留期间的最近一千个。其中含有源代码和变量值。',
};
/** What the coordinator says of its reasons; `(.*)` is the name of a window. */
const REASONS = [
  [/^no other window was live$/, '没有其他活动窗口'], [/^you chose it$/, '您选择了它'],
  [/^the live window went away$/, '原活动窗口已离开'], [/^it came back$/, '它回来了'],
  [/^it came back in time$/, '它及时回来了'], [/^it was restarted$/, '它已重启'],
  [/^it was live before the coordinator restarted$/, '协调器重启前它是活动窗口'], [/^it has the focus$/, '它拥有焦点'],
  [/^you stopped it$/, '您停止了它'], [/^auto-start is off$/, '自动启动已关闭'],
  [/^you stopped the live window$/, '您停止了活动窗口'], [/^waiting for the window that was live$/, '正在等待原活动窗口'],
  [/^(.*) is live$/, '{0} 处于活动状态'], [/^waiting for (.*) to come back$/, '正在等待 {0} 回来'],
];
const isChinese = navigator.language.toLowerCase().startsWith('zh');
const TEXTS = isChinese ? CHINESE : ENGLISH;
const BYTES_OF_A_TOKEN = 4;
const CALLS_MAX = 1000;
/** Calls that come at once, and with each look at older ones. */
const AT_ONCE = 100;

const $ = (id) => document.getElementById(id);
const fill = (text, values) => text.replace(/\{(\d)\}/g, (_, index) => String(values[index]));
const say = (key, ...values) => fill(TEXTS[key], values);

function reason(why) {
  if (!isChinese) {
    return why;
  }
  for (const [pattern, text] of REASONS) {
    const found = pattern.exec(why);
    if (found) {
      return fill(text, found.slice(1));
    }
  }
  return why;
}

const clock = new Intl.DateTimeFormat(navigator.language, { timeStyle: 'medium' });
const day = new Intl.DateTimeFormat(navigator.language, { dateStyle: 'medium', timeStyle: 'short' });
const number = new Intl.NumberFormat(navigator.language);

/** An element with attributes and children; a text is a text node. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function time(ms) {
  const at = new Date(ms);
  return make('time', { datetime: at.toISOString(), title: day.format(at) }, clock.format(at));
}

/** Makes the rows of `parent` those of `items`, and draws anew only what has changed. */
function draw(parent, items, keyOf, render) {
  const known = new Map([...parent.children].map((row) => [row.dataset.key, row]));
  let next = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const text = JSON.stringify(item);
    let row = known.get(key);
    known.delete(key);
    if (row && row.shown !== text) {
      const focused = row.contains(document.activeElement) ? document.activeElement.dataset.verb : undefined;
      const fresh = render(item);
      if (next === row) {
        next = fresh;
      }
      row.replaceWith(fresh);
      row = fresh;
      fresh.querySelector(`[data-verb="${focused}"]`)?.focus();
    }
    row ??= render(item);
    row.dataset.key = key;
    row.shown = text;
    if (row === next) {
      next = row.nextElementSibling;
    } else {
      parent.insertBefore(row, next);
    }
  }
  for (const row of known.values()) {
    row.remove();
  }
}

/** The same may happen twice in a moment: its turn tells one from the next. */
function inTurn(items) {
  const seen = new Map();
  return items.map((item) => {
    const text = JSON.stringify(item);
    seen.set(text, (seen.get(text) ?? 0) + 1);
    return { ...item, turn: seen.get(text) };
  });
}

// Windows

const names = new Map();

function badge(window) {
  const word = window.responsive ? window.state : 'silent';
  return make('span', { class: `badge ${window.responsive ? window.state : 'bad'}` }, say(word));
}

function button(verb, window) {
  const element = make('button', { type: 'button', 'data-verb': verb, title: say(`${verb}Tip`, window.name) }, say(verb));
  element.setAttribute('aria-label', `${say(verb)}: ${window.name}`);
  element.addEventListener('click', () => command(window, verb));
  return element;
}

function programLine({ name, running, died }) {
  const said = running > 1 ? say('times', number.format(running), name) : name;
  const deaths = died > 0 ? make('span', { class: 'bad' }, ` ${say('died', number.format(died))}`) : '';
  return make('div', { class: running > 0 ? '' : 'soft' }, said, deaths);
}

function windowRow(window) {
  const verbs = [window.state === 'live' ? '' : 'take', window.state === 'off' ? '' : 'stop', 'restart'];
  const sessions = window.sessions.map(({ name, by_user: isUsers }) =>
    make('div', {}, name, isUsers ? make('span', { class: 'soft' }, ` (${say('byUser')})`) : ''));
  const more = window.more_breakpoints > 0 ? [say('more', number.format(window.more_breakpoints))] : [];
  const breakpoints = [...window.breakpoints, ...more].map((place) => make('div', { class: 'soft mono path' }, place));
  return make('tr', {},
    make('td', {}, badge(window)),
    make('th', { scope: 'row' }, window.name, ...window.folders.map((folder) => make('div', { class: 'soft mono path' }, folder))),
    make('td', {}, window.responsive ? reason(window.why) : say('silentWhy')),
    make('td', {}, ...sessions, ...breakpoints),
    make('td', {}, ...window.programs.map(programLine)),
    make('td', {}, make('div', { class: 'actions' }, ...verbs.filter(Boolean).map((verb) => button(verb, window)))));
}

/** Sends what the person wants. */
function post(path) {
  const form = document.querySelector('meta[name="baton-form"]').content;
  const headers = { 'content-type': 'application/json', 'baton-form': form };
  return fetch(path, { method: 'POST', headers, body: '{}' }).catch(() => undefined);
}

async function command(window, verb) {
  const answer = await post(`/windows/${encodeURIComponent(window.id)}/${verb}`);
  if (answer?.status === 401) {
    close();
  } else if (!answer?.ok) {
    const said = await answer?.json().catch(() => undefined);
    trouble(say('failed', window.name, said?.message ?? TEXTS.lost));
  } else {
    trouble('');
  }
}

// What happened

const SENTENCES = {
  opened: 'opened', closed: 'closed', live: 'becameLive', standby: 'becameStandby', off: 'becameOff',
  silent: 'becameSilent', answers: 'answers',
};

function storyRow({ at_ms: at, window, what }) {
  const sentence = say(SENTENCES[what.kind], window, reason(what.why ?? ''));
  const rule = what.rule ? make('span', { class: 'soft' }, what.rule) : '';
  return make('li', {}, time(at), make('span', { class: what.kind === 'silent' ? 'bad' : '' }, sentence), rule);
}

function onOverview(overview) {
  names.clear();
  overview.windows.forEach(({ id, name }) => names.set(id, name));
  const live = overview.windows.find(({ id }) => id === overview.live);
  const awaited = overview.awaiting && (names.get(overview.awaiting) ?? overview.awaiting);
  const nobody = overview.windows.length > 0 ? say('nobodyWhy') : say('nobody');
  const summary = live ? say('isLive', live.name, reason(live.why)) : awaited ? say('isAwaited', awaited) : nobody;
  if ($('summary').textContent !== summary) {
    $('summary').textContent = summary;
  }
  document.title = live ? `${live.name} - Baton` : 'Baton';
  $('about').textContent = `${say('about', overview.version, overview.pid, day.format(overview.since_ms))} - ${overview.url}`;
  draw($('windows'), overview.windows, ({ id }) => id, windowRow);
  draw($('story'), inTurn(overview.story).reverse(), (happening) => JSON.stringify(happening), storyRow);
  draw($('clients'), overview.clients, ({ name }) => name, clientRow);
  $('no-windows').hidden = overview.windows.length > 0;
  $('no-clients').hidden = overview.clients.length > 0;
}

function clientRow({ name, n_calls: count, last_ms: last }) {
  return make('tr', {}, make('th', { scope: 'row' }, name), make('td', { class: 'number' }, number.format(count)), make('td', {}, time(last)));
}

// Calls

const calls = new Map();
let isPaused = false;
/** There are no older ones. */
let isAllThere = true;

function outcome(state) {
  if (state.is === 'done') {
    return state.error ? make('span', { class: 'bad' }, state.error) : say('ok');
  }
  return say(state.is === 'passed_on' ? 'passedOn' : state.is);
}

function callRow(call) {
  const { state } = call;
  const isDone = state.is === 'done';
  const tokens = isDone && state.n_bytes > 0 ? number.format(Math.ceil(state.n_bytes / BYTES_OF_A_TOKEN)) : '';
  const given = call.arguments ? make('div', { class: 'soft path' }, call.arguments) : '';
  return make('tr', {},
    make('td', {}, time(call.at_ms)), make('td', { class: 'mono' }, call.tool, given), make('td', {}, call.name ?? ''),
    make('td', {}, call.client), make('td', { class: 'number' }, isDone ? `${number.format(state.ms)} ms` : ''),
    make('td', {}, outcome(state)), make('td', { class: 'number' }, tokens), make('td', { class: 'soft mono' }, idButton(call.id)));
}

function idButton(id) {
  const element = make('button', { type: 'button', class: 'plain', 'data-verb': 'logs', title: say('showLogs', id) }, id);
  element.addEventListener('click', () => showLogsOf(id));
  return element;
}

function onCalls(changed) {
  if (calls.size === 0) {
    isAllThere = changed.length < AT_ONCE;
  }
  for (const call of changed) {
    // A window that has closed keeps the name that it had.
    const name = names.get(call.window) ?? calls.get(call.id)?.name ?? call.window;
    calls.set(call.id, { ...call, name });
  }
  drawCalls();
}

let isDrawing = false;

/** At most once for each frame. */
function drawCalls() {
  if (isDrawing || isPaused) {
    return;
  }
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    const sorted = [...calls.values()].sort((one, other) => other.at_ms - one.at_ms || other.seq - one.seq);
    sorted.splice(CALLS_MAX).forEach(({ id }) => calls.delete(id));
    const wanted = $('filter').value.trim().toLowerCase();
    const fits = (call) => [call.tool, call.arguments, call.name, call.client, call.id, call.state.error, call.state.is]
      .some((text) => text?.toLowerCase().includes(wanted));
    draw($('calls'), wanted ? sorted.filter(fits) : sorted, ({ id }) => id, callRow);
    $('no-calls').hidden = sorted.length > 0;
    $('older').hidden = isAllThere || sorted.length === 0;
  });
}

async function older() {
  const done = [...calls.values()].filter(({ state }) => state.is === 'done' || state.is === 'passed_on');
  const before = Math.min(...done.map(({ seq }) => seq));
  const answer = await fetch(Number.isFinite(before) ? `/calls?before=${before}` : '/calls').catch(() => undefined);
  if (answer?.status === 401) {
    close();
  } else if (answer?.ok) {
    const more = await answer.json();
    isAllThere = more.length < AT_ONCE || calls.size + more.length >= CALLS_MAX;
    onCalls(more);
  }
}

const LOOK_EVERY_MS = 2000;

// Raw streams

const EVENTS_MAX = 1000;
let events = [];
let listening;

function eventRow({ at_ms: at, client, stream, text }) {
  return make('tr', {},
    make('td', {}, time(at)), make('td', {}, client), make('td', { class: 'number' }, number.format(stream)),
    make('td', { class: 'mono path lines' }, text));
}

function drawEvents() {
  const wanted = $('streams-filter').value.trim().toLowerCase();
  const fitting = events.filter(({ client, text }) => [client, text].some((told) => told.toLowerCase().includes(wanted)));
  draw($('streams'), fitting.reverse(), (event) => String(event.number), eventRow);
  $('no-streams').hidden = fitting.length > 0;
}

const lastEvent = () => events.at(-1)?.number ?? 0;

async function takeEvents(answer) {
  if (answer?.status === 401) {
    close();
  } else if (answer?.ok) {
    const { on, n_all: count, events: more } = await answer.json();
    // Off and on again, they are counted from 1.
    const known = on && count >= lastEvent() ? events : [];
    events = [...known, ...more.filter((event) => event.number > (known.at(-1)?.number ?? 0))].slice(-EVENTS_MAX);
    $('keep').setAttribute('aria-pressed', String(on));
    drawEvents();
  }
}

/** Asks for events as long as a person can see them. */
async function lookAtStreams() {
  clearTimeout(listening);
  if (!$('streams-part').open) {
    return;
  }
  listening = setTimeout(lookAtStreams, LOOK_EVERY_MS);
  if (!document.hidden) {
    takeEvents(await fetch(`/streams?after=${lastEvent()}`).catch(() => undefined));
  }
}

async function keep() {
  const isOn = $('keep').getAttribute('aria-pressed') === 'true';
  takeEvents(await post(isOn ? '/streams/off' : '/streams/on'));
}

// Logs

let logs = { stamp: '', lines: [] };
let wantedCall = '';
let looking;

function logRow({ at, kind, level, text }) {
  const isBad = level === 'ERROR' || level === 'WARN';
  return make('tr', {},
    make('td', {}, time(Date.parse(at))), make('td', { class: isBad ? 'bad' : '' }, level),
    make('td', {}, say(kind)), make('td', { class: 'mono path' }, text));
}

function drawLogs() {
  const wanted = $('logs-filter').value.trim().toLowerCase();
  const lines = logs.lines.filter(({ text }) => text.toLowerCase().includes(wanted));
  draw($('logs'), inTurn(lines).reverse(), (line) => JSON.stringify(line), logRow);
  $('no-logs').hidden = lines.length > 0;
}

/** Asks for the lines as long as a person can see them. */
async function lookAtLogs() {
  clearTimeout(looking);
  if (!$('logs-part').open) {
    return;
  }
  looking = setTimeout(lookAtLogs, LOOK_EVERY_MS);
  if (document.hidden) {
    return;
  }
  const [level, call] = [$('level').value, wantedCall];
  const query = new URLSearchParams({ level, call, stamp: logs.stamp });
  const answer = await fetch(`/logs?${query}`).catch(() => undefined);
  if (answer?.status === 401) {
    close();
  } else if (answer?.status === 200) {
    const told = await answer.json();
    // Something else may have been asked for since, and been answered.
    if (level === $('level').value && call === wantedCall) {
      logs = told;
      drawLogs();
    }
  }
}

/** All that is logged at the level, or what is about one call. */
function showLogsOf(call) {
  wantedCall = call;
  $('logs-call').hidden = call === '';
  $('logs-call').textContent = say('logsOf', call);
  logs.stamp = '';
  if ($('logs-part').open) {
    lookAtLogs();
  } else {
    $('logs-part').open = true;
  }
  if (call !== '') {
    $('logs-part').scrollIntoView();
  }
}

// The connection

function trouble(text) {
  $('trouble').textContent = text;
  $('trouble').hidden = text === '';
}

let stream;

function close() {
  stream.close();
  clearTimeout(looking);
  clearTimeout(listening);
  trouble(TEXTS.over);
  document.querySelectorAll('button').forEach((one) => { one.disabled = true; });
}

function open() {
  stream = new EventSource('/events');
  const on = (name, take) => stream.addEventListener(name, ({ data }) => take(JSON.parse(data)));
  stream.addEventListener('open', () => {
    calls.clear();
    trouble('');
  });
  on('overview', onOverview);
  on('calls', onCalls);
  stream.addEventListener('error', async () => {
    trouble(TEXTS.lost);
    // A browser gives up for good when it hears anything but a stream.
    const answer = await fetch('/icon.svg').catch(() => undefined);
    if (answer?.status === 401) {
      close();
    } else if (stream.readyState === EventSource.CLOSED) {
      setTimeout(open, 1000);
    }
  });
}

document.documentElement.lang = isChinese ? 'zh-CN' : 'en';
document.querySelectorAll('[data-text]').forEach((element) => { element.textContent = TEXTS[element.dataset.text]; });
$('filter').addEventListener('input', drawCalls);
$('older').addEventListener('click', older);
$('streams-part').addEventListener('toggle', lookAtStreams);
$('streams-filter').addEventListener('input', drawEvents);
$('keep').addEventListener('click', keep);
$('logs-part').addEventListener('toggle', lookAtLogs);
$('logs-filter').addEventListener('input', drawLogs);
$('level').addEventListener('change', () => showLogsOf(wantedCall));
$('logs-call').addEventListener('click', () => showLogsOf(''));
$('pause').addEventListener('click', () => {
  isPaused = !isPaused;
  $('pause').setAttribute('aria-pressed', String(isPaused));
  drawCalls();
});
drawCalls();
open();
