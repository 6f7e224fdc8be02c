package server

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/trainwright/trainwright/internal/redact"
)

// Trace records the protocol: one JSON object on a line for every message that came or went, with secrets masked. What
// clients sent can be sent again from it, and the answers compared.
type Trace struct {
	now func() time.Time

	mu  sync.Mutex
	out io.Writer
	err error
}

// Traced is one line of a trace. Client names the session, over HTTP the session's id or for a message without one that
// of the call; From is "client" or "server". Message is the message as it was, or a text if it was no JSON.
type Traced struct {
	At      time.Time       `json:"at"`
	Client  string          `json:"client"`
	From    string          `json:"from"`
	Message json.RawMessage `json:"message"`
}

// NewTrace records to out.
func NewTrace(out io.Writer, now func() time.Time) *Trace { return &Trace{now: now, out: out} }

// Err gives the failure that ended the recording, if one did.
func (t *Trace) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// The two ends of a message.
const (
	fromClient = "client"
	fromServer = "server"
)

// record writes a message down; a nil Trace does nothing. A trace that can't be written ends, and the server goes on.
func (t *Trace) record(client, from string, message []byte) {
	if t == nil {
		return
	}
	masked := json.RawMessage(redact.Bytes(message))
	if !json.Valid(masked) {
		masked, _ = json.Marshal(redact.Text(string(message))) // a text always encodes
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	line, err := json.Marshal(Traced{At: t.now().UTC(), Client: client, From: from, Message: masked})
	if err == nil && t.err == nil {
		_, err = t.out.Write(append(line, '\n'))
	}
	if err != nil && t.err == nil {
		t.err = fmt.Errorf("write the trace: %w", err)
	}
}
