// Loaded before the conformance suite, which knows no client tokens: adds ours to its requests.

import http from "node:http";

const bearer = `Bearer ${process.env.MCP_TOKEN}`;

const fetchAsIs = globalThis.fetch;
globalThis.fetch = (input, init = {}) => {
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  if (!headers.has("authorization")) headers.set("authorization", bearer);
  return fetchAsIs(input, { ...init, headers });
};

const requestAsIs = http.request;
http.request = (...args) => {
  const request = requestAsIs(...args);
  if (!request.hasHeader("authorization")) request.setHeader("authorization", bearer);
  return request;
};
