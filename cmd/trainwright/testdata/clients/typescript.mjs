// A client on the official TypeScript SDK that takes a training step to its end, as an agent would: it makes each next
// call that an answer names. It prints what it saw as one JSON object. Both lines of the SDK check every answer against
// the output schema of its tool, and refuse one that does not fit.
//
//   node typescript.mjs '{"sdk":"v1"|"v2","mode":"legacy"|"auto","url":…|"command":…,"args":[…],"handoff":{…}}'
const given = JSON.parse(process.argv[2]);
const sdk = given.sdk === 'v1' ? await firstLine() : await secondLine();

async function firstLine() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  return { Client, StdioClientTransport, StreamableHTTPClientTransport, callTool: (c, params, options) => c.callTool(params, undefined, options) };
}

async function secondLine() {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  return { Client, StdioClientTransport, StreamableHTTPClientTransport, callTool: (c, params, options) => c.callTool(params, options) };
}

const seen = { calls: [], progress: [], wrongProgress: 0, cancelled: '', unknownTool: '', unknownResource: '', errors: [] };
const client = new sdk.Client({ name: 'test', version: '1' }, given.sdk === 'v1' ? {} : { versionNegotiation: { mode: given.mode } });
client.onerror = (e) => seen.errors.push(String(e));
const transport = given.url
  ? new sdk.StreamableHTTPClientTransport(new URL(given.url))
  : new sdk.StdioClientTransport({ command: given.command, args: given.args, stderr: 'inherit', env: process.env });
await client.connect(transport);
seen.server = client.getServerVersion();
seen.version = given.sdk === 'v1' ? (transport.protocolVersion ?? '') : client.getNegotiatedProtocolVersion();
seen.instructions = client.getInstructions();
seen.tools = (await client.listTools()).tools.map((t) => t.name);
seen.resources = (await client.listResources()).resources.map((r) => r.uri);
seen.templates = (await client.listResourceTemplates()).resourceTemplates.map((t) => t.uriTemplate);

// Two calls at once, then the step from handoff to its end.
const both = await Promise.all([sdk.callTool(client, { name: 'run_list', arguments: {} }), sdk.callTool(client, { name: 'skill_list', arguments: {} })]);
seen.together = both.map((r) => Object.keys(r.structuredContent).sort());
let next = { tool: 'trainer', arguments: { step_handoff: given.handoff, wait_seconds: 2 } };
while (next && seen.calls.length < 40) {
  let done = false;
  const result = await sdk.callTool(client, { name: next.tool, arguments: next.arguments }, {
    timeout: 120_000,
    onprogress: (p) => { if (done) seen.wrongProgress++; else seen.progress.push(p.progress); },
  });
  done = true;
  const answer = result.structuredContent;
  seen.calls.push(next.tool);
  seen.status = answer.execution_result.status;
  seen.run = answer.run?.run_id;
  next = seen.status === 'partial' ? answer.run.next_call : undefined;
}
const report = await client.readResource({ uri: `run://${seen.run}/validation_report.md` });
seen.report = report.contents[0].text;

// What can't be done is said, and a call that the client gives up does no harm to the next one.
try { await sdk.callTool(client, { name: 'no_such_tool', arguments: {} }); } catch (e) { seen.unknownTool = e.message; }
try { await client.readResource({ uri: 'run://r-none/x.md' }); } catch (e) { seen.unknownResource = e.message; }
const refused = await sdk.callTool(client, { name: 'run_status', arguments: { run_id: 'r-none' } });
seen.refused = { isError: refused.isError, codes: refused.structuredContent.findings.map((f) => f.code) };
// What comes to onerror from here on may be an answer that crossed the cancellation on its way.
client.onerror = () => {};
const abort = new AbortController();
const givenUp = sdk.callTool(client, { name: 'run_list', arguments: {} }, { signal: abort.signal });
abort.abort('changed my mind');
try { await givenUp; } catch (e) { seen.cancelled = String(e?.message ?? e); }
seen.after = (await sdk.callTool(client, { name: 'run_list', arguments: {} })).structuredContent.runs.length;
await client.close();
console.log(JSON.stringify(seen));
