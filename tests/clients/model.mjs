// A model without a mind: it has an AI client's own program call the tools of a list, one after the other, and prints
// what the client then passes on. It speaks the parts that they use of three interfaces: the Messages API (Claude Code),
// the Responses API (Codex), and the Gemini API (Gemini CLI).
//
//     node model.mjs '[{"name": "debug", "input": {}}]'
//
// It prints a line with its port, and then a line for each result: `{"is_error":false,"texts":["..."]}`.

import { createServer } from 'node:http';

const script = JSON.parse(process.argv[2]);
let nCalled = 0;

function print(line) {
    process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** The next call, if the client has its tool; names are those of the client. */
function next(names, named) {
    const { name, input } = script[nCalled] ?? {};
    if (name === undefined || !names.includes(named(name))) {
        return undefined;
    }
    nCalled += 1;
    return { id: `call_${nCalled}`, name, input };
}

/** The texts of one result, whichever way the client writes them. */
function texts(content) {
    return typeof content === 'string' ? [content] : content.map((block) => block.text ?? JSON.stringify(block));
}

function stream(response, events) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of events) {
        response.write(`${event.type ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`);
    }
    response.end();
}

function* messages(call, message) {
    const block = call
        ? { type: 'tool_use', id: call.id, name: `mcp__baton__${call.name}`, input: {} }
        : { type: 'text', text: '' };
    yield { type: 'message_start', message };
    yield { type: 'content_block_start', index: 0, content_block: block };
    const delta = call
        ? { type: 'input_json_delta', partial_json: JSON.stringify(call.input) }
        : { type: 'text_delta', text: 'Done.' };
    yield { type: 'content_block_delta', index: 0, delta };
    yield { type: 'content_block_stop', index: 0 };
    const reason = call ? 'tool_use' : 'end_turn';
    yield { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 1 } };
    yield { type: 'message_stop' };
}

/** As Claude Code asks. */
function answerMessages(asked, response) {
    const last = asked.messages.at(-1).content;
    for (const block of Array.isArray(last) ? last : []) {
        if (block.type === 'tool_result') {
            print({ is_error: block.is_error === true, texts: texts(block.content) });
        }
    }
    const names = (asked.tools ?? []).map((tool) => tool.name);
    const call = next(names, (name) => `mcp__baton__${name}`);
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: `msg_${Date.now()}`, type: 'message', role: 'assistant', model: asked.model, content: [], usage };
    if (asked.stream) {
        stream(response, messages(call, { ...message, stop_reason: null, stop_sequence: null }));
        return;
    }
    const content = call
        ? { type: 'tool_use', id: call.id, name: `mcp__baton__${call.name}`, input: call.input }
        : { type: 'text', text: 'Done.' };
    response.writeHead(200, { 'content-type': 'application/json' });
    const reason = call ? 'tool_use' : 'end_turn';
    response.end(JSON.stringify({ ...message, content: [content], stop_reason: reason }));
}

/** As Codex asks. Before each result it says how long the call took. */
function answerResponses(asked, response) {
    const last = asked.input.at(-1);
    if (last.type === 'function_call_output') {
        const told = texts(last.output).map((text) => text.replace(/^Wall time: .* seconds\nOutput:\n?/, ''));
        print({ is_error: false, texts: told.filter((text) => text !== '') });
    }
    const space = (asked.tools ?? []).find((tool) => tool.type === 'namespace' && tool.name === 'mcp__baton');
    const call = next((space?.tools ?? []).map((tool) => tool.name), (name) => name);
    const item = call
        ? {
              type: 'function_call',
              id: `item_${call.id}`,
              call_id: call.id,
              namespace: space.name,
              name: call.name,
              arguments: JSON.stringify(call.input),
          }
        : { type: 'message', id: 'item', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] };
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const id = `resp_${nCalled}`;
    stream(response, [
        { type: 'response.created', response: { id } },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: { id, usage } },
    ]);
}

/** As Gemini CLI asks. It marks each result as of somebody it does not trust. */
function answerContents(asked, response) {
    for (const { functionResponse } of asked.contents.at(-1).parts) {
        if (functionResponse) {
            const { output, error } = functionResponse.response;
            const text = (output ?? JSON.stringify(error)).replace(/^<untrusted_context>\n|\n<\/untrusted_context>$/g, '');
            print({ is_error: error !== undefined, texts: [text] });
        }
    }
    const declared = (asked.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []);
    const call = next(declared.map((tool) => tool.name), (name) => `mcp_baton_${name}`);
    const part = call ? { functionCall: { name: `mcp_baton_${call.name}`, args: call.input } } : { text: 'Done.' };
    const content = { role: 'model', parts: [part] };
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    stream(response, [{ candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata }]);
}

async function answer(request, response) {
    let body = '';
    for await (const part of request) {
        body += part;
    }
    const { pathname } = new URL(request.url, 'http://localhost');
    if (pathname === '/v1/messages') {
        answerMessages(JSON.parse(body), response);
    } else if (pathname.endsWith('/responses')) {
        answerResponses(JSON.parse(body), response);
    } else if (pathname.endsWith(':streamGenerateContent')) {
        answerContents(JSON.parse(body), response);
    } else {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"input_tokens":1}');
    }
}

const server = createServer((request, response) => void answer(request, response));
server.listen(0, '127.0.0.1', () => print({ port: server.address().port }));
