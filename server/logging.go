package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// say sends a log message about a request to its client, if that wants messages of this level: a session says so with
// logging/setLevel and has errors before it did, a request of protocol 2026-07-28 in its _meta and has none otherwise.
// The server's own log on stderr has all of them, and more.
func (s *Server) say(ctx context.Context, level mcp.LoggingLevel, data map[string]any) {
	if !wants(ctx, level) {
		return
	}
	_ = s.Notify(ctx, "notifications/message", map[string]any{"level": level, "logger": "trainwright", "data": data}) // not owed: a full queue drops it
}

// levels are those that a client may ask for, the chattiest first.
var levels = []mcp.LoggingLevel{mcp.LoggingLevelDebug, mcp.LoggingLevelInfo, mcp.LoggingLevelNotice, mcp.LoggingLevelWarning, mcp.LoggingLevelError, mcp.LoggingLevelCritical, mcp.LoggingLevelAlert, mcp.LoggingLevelEmergency}

func unknownLevel(level string) string {
	return fmt.Sprintf("there is no level %q; the levels are %s", level, strings.Trim(fmt.Sprint(levels), "[]"))
}

func wants(ctx context.Context, level mcp.LoggingLevel) bool {
	if info := mcpserver.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		return info.LogLevel != "" && level.ShouldSendTo(info.LogLevel)
	}
	session, ok := mcpserver.ClientSessionFromContext(ctx).(mcpserver.SessionWithLogging)
	return ok && session.Initialized() && level.ShouldSendTo(session.GetLogLevel())
}
