// Package clients writes trainwright into the configuration of the programs that start MCP servers, and takes it out again.
//
// A configuration belongs to its owner: an edit inserts, replaces or removes one entry and leaves every other byte as it
// was, comments, order and line ends included. Every edit is parsed again before it is committed, and must differ from
// what was there in that entry alone. What can't be parsed is refused with its place. A commit is a rename, and leaves
// what was there in a backup beside the file.
//
// Places and formats are those of the clients' documentation: "Connect Claude Code to tools via MCP" (code.claude.com/docs),
// "Model Context Protocol" and "Configuration Reference" of Codex (developers.openai.com/codex), "MCP servers with Gemini
// CLI" (geminicli.com/docs), "MCP servers" and "Config" of OpenCode (opencode.ai/docs), "MCP configuration reference" of
// Visual Studio Code (code.visualstudio.com/docs), and "Model Context Protocol (MCP)" of Cursor (cursor.com/docs).
package clients
