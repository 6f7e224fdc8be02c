// A server with the three tools of the benchmark on the official TypeScript SDK: over stdio on its second line, and with
// "http" over streamable HTTP on its first, whose transport serves Node's own http without an adapter. HTTP is served on
// a free port of the loopback, which it prints on stderr.
const tools = (z) => [
  ['echo', 'Gives back what it got.', { text: z.string() }, { text: z.string() }, async ({ text }) => ({ text })],
  ['add', 'Adds two numbers.', { a: z.number(), b: z.number() }, { sum: z.number() }, async ({ a, b }) => ({ sum: a + b })],
  ['hold', 'Waits, as one waits for a job.', { seconds: z.number() }, { seconds: z.number() },
    async ({ seconds }) => { await new Promise((done) => setTimeout(done, seconds * 1000)); return { seconds }; }],
];

function offer(server, z, wrap) {
  for (const [name, description, input, output, work] of tools(z)) {
    server.registerTool(name, { description, inputSchema: wrap(input), outputSchema: wrap(output) }, async (given) => {
      const structuredContent = await work(given);
      return { structuredContent, content: [{ type: 'text', text: JSON.stringify(structuredContent) }] };
    });
  }
  return server;
}

if (process.argv[2] === 'http') {
  const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
  const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
  const { z } = await import('zod');
  const { createServer } = await import('node:http');
  const { randomUUID } = await import('node:crypto');
  const sessions = new Map();
  const listener = createServer(async (request, response) => {
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (id) => sessions.set(id, transport) });
      await offer(new McpServer({ name: 'typescript', version: '1' }), z, (shape) => shape).connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  listener.listen(0, '127.0.0.1', () => console.error(`http://127.0.0.1:${listener.address().port}/mcp`));
} else {
  const { McpServer } = await import('@modelcontextprotocol/server');
  const { StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
  const { z } = await import('zod');
  await offer(new McpServer({ name: 'typescript', version: '1' }), z, (shape) => z.object(shape)).connect(new StdioServerTransport());
}
