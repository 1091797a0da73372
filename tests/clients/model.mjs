// A model without a mind: it has an AI client's own program call the tools of a list, one after the other, and prints
// what the client then passes on. It speaks the part of the Messages API that Claude Code uses.
//
//     node model.mjs '[{"name": "mcp__baton__debug", "input": {}}]'
//
// It prints a line with its port, and then a line for each result: `{"is_error":false,"texts":["..."]}`.

import { createServer } from 'node:http';

const script = JSON.parse(process.argv[2]);
let nCalled = 0;

function print(line) {
    process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** The texts of one result, whichever way the client writes them. */
function texts(content) {
    return typeof content === 'string' ? [content] : content.map((block) => block.text ?? JSON.stringify(block));
}

/** The next step: a call, or the end. */
function next({ tools = [] }) {
    const { name, input } = script[nCalled] ?? {};
    if (name === undefined || !tools.some((tool) => tool.name === name)) {
        return { block: { type: 'text', text: 'Done.' }, reason: 'end_turn' };
    }
    nCalled += 1;
    return { block: { type: 'tool_use', id: `toolu_${nCalled}`, name, input }, reason: 'tool_use' };
}

function* events({ block, reason }, message) {
    const isCall = block.type === 'tool_use';
    yield { type: 'message_start', message };
    yield { type: 'content_block_start', index: 0, content_block: isCall ? { ...block, input: {} } : { ...block, text: '' } };
    const delta = isCall
        ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
        : { type: 'text_delta', text: block.text };
    yield { type: 'content_block_delta', index: 0, delta };
    yield { type: 'content_block_stop', index: 0 };
    yield { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 1 } };
    yield { type: 'message_stop' };
}

async function answer(request, response) {
    let body = '';
    for await (const part of request) {
        body += part;
    }
    const path = new URL(request.url, 'http://localhost').pathname;
    if (path !== '/v1/messages') {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"input_tokens":1}');
        return;
    }
    const asked = JSON.parse(body);
    const last = asked.messages.at(-1).content;
    for (const block of Array.isArray(last) ? last : []) {
        if (block.type === 'tool_result') {
            print({ is_error: block.is_error === true, texts: texts(block.content) });
        }
    }
    const step = next(asked);
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: `msg_${Date.now()}`, type: 'message', role: 'assistant', model: asked.model, content: [], usage };
    if (!asked.stream) {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ ...message, content: [step.block], stop_reason: step.reason }));
        return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of events(step, { ...message, stop_reason: null, stop_sequence: null })) {
        response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    response.end();
}

const server = createServer((request, response) => void answer(request, response));
server.listen(0, '127.0.0.1', () => print({ port: server.address().port }));
