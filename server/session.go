package server

import (
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// notificationQueue is how many notifications may wait for stdout. mcp-go drops what does not fit; progress that a
// client is too slow to read is the only thing sent so far, and the next progress replaces it.
const notificationQueue = 1024

// session is the one client of a stdio server, as mcp-go wants to see it.
type session struct {
	id            string
	notifications chan mcp.JSONRPCNotification
	ready         atomic.Bool
	send          func(message []byte) // queues a message of ours for stdout

	mu           sync.Mutex
	level        mcp.LoggingLevel
	version      string
	info         mcp.Implementation
	capabilities mcp.ClientCapabilities
}

var (
	_ mcpserver.SessionWithLogging         = (*session)(nil)
	_ mcpserver.SessionWithClientInfo      = (*session)(nil)
	_ mcpserver.SessionWithProtocolVersion = (*session)(nil)
)

func newSession(id string) *session {
	return &session{id: id, notifications: make(chan mcp.JSONRPCNotification, notificationQueue), level: mcp.LoggingLevelError}
}

// SessionID names the session.
func (s *session) SessionID() string { return s.id }

// Initialize marks the session ready for notifications.
func (s *session) Initialize() { s.ready.Store(true) }

// Initialized says whether notifications may be sent.
func (s *session) Initialized() bool { return s.ready.Load() }

// NotificationChannel is where mcp-go queues notifications; the goroutine that owns stdout drains it.
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notifications }

// SetLogLevel sets the least severe level of log notifications.
func (s *session) SetLogLevel(level mcp.LoggingLevel) { s.with(func() { s.level = level }) }

// GetLogLevel tells the least severe level of log notifications.
func (s *session) GetLogLevel() (level mcp.LoggingLevel) {
	s.with(func() { level = s.level })
	return level
}

// SetProtocolVersion keeps the version that initialize negotiated.
func (s *session) SetProtocolVersion(version string) { s.with(func() { s.version = version }) }

// ProtocolVersion tells the version that initialize negotiated, "" before it.
func (s *session) ProtocolVersion() (version string) {
	s.with(func() { version = s.version })
	return version
}

// SetClientInfo keeps what the client said about itself.
func (s *session) SetClientInfo(info mcp.Implementation) { s.with(func() { s.info = info }) }

// GetClientInfo tells what the client said about itself.
func (s *session) GetClientInfo() (info mcp.Implementation) {
	s.with(func() { info = s.info })
	return info
}

// SetClientCapabilities keeps what the client can do.
func (s *session) SetClientCapabilities(c mcp.ClientCapabilities) {
	s.with(func() { s.capabilities = c })
}

// GetClientCapabilities tells what the client can do.
func (s *session) GetClientCapabilities() (c mcp.ClientCapabilities) {
	s.with(func() { c = s.capabilities })
	return c
}

func (s *session) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}
