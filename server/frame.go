package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// maxLine is the longest message one line may carry, in bytes. A step_handoff with whole documents inside fits many
// times over; what is longer would only fill memory.
const maxLine = 16 << 20

// overlong is the error of a line that was longer than the limit. The line has been read to its end, so that the next
// one can be served.
type overlong struct{ bytes, limit int64 }

func (o *overlong) Error() string {
	return fmt.Sprintf("a message of %d bytes is longer than the limit of %d bytes; send large content as a file path instead", o.bytes, o.limit)
}

// lines reads newline-delimited messages with a bound on each.
type lines struct {
	reader *bufio.Reader
	limit  int64
}

func newLines(r io.Reader, limit int64) *lines {
	return &lines{reader: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line without its end. The slice belongs to the caller. An *overlong says that a line was
// skipped and reading may go on; any other error ends the stream, and the bytes before it still come along.
func (l *lines) next() ([]byte, error) {
	var line []byte
	var total int64
	for {
		fragment, err := l.reader.ReadSlice('\n')
		total += int64(len(fragment))
		if total <= l.limit+1 { // the newline itself does not count
			line = append(line, fragment...)
		} else {
			line = nil
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		length := total
		if err == nil {
			length--
		}
		if length > l.limit {
			return nil, &overlong{bytes: length, limit: l.limit}
		}
		return bytes.TrimSpace(line), err
	}
}

// envelope is what the transport itself has to know of a JSON-RPC message.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// isRequest tells a request from a notification and from a client's answer.
func (e envelope) isRequest() bool {
	return e.Method != "" && len(e.ID) > 0 && !bytes.Equal(e.ID, []byte("null"))
}

// isAnswer tells a client's answer to a request of ours.
func (e envelope) isAnswer() bool { return e.Method == "" && len(e.ID) > 0 }

// peek reads the envelope of a message. The fault is a complete JSON-RPC error for bytes that are no message at all.
func peek(line []byte) (envelope, *rpcError) {
	var e envelope
	var syntax *json.SyntaxError
	err := json.Unmarshal(line, &e)
	switch {
	case err == nil && line[0] == '{': // null decodes into anything
		return e, nil
	case asSyntax(err, &syntax):
		return e, &rpcError{Code: codeParse, Message: fmt.Sprintf("the message is not JSON: %v at byte %d; send one JSON-RPC object (over stdio: on one line)", err, syntax.Offset)}
	case line[0] == '[':
		return e, &rpcError{Code: codeInvalidRequest, Message: "a batch was sent; batches left the protocol in 2025-06-18: send one JSON-RPC object (over stdio: on one line)"}
	case line[0] != '{':
		return e, &rpcError{Code: codeInvalidRequest, Message: "the message is JSON but no object; send one JSON-RPC object (over stdio: on one line)"}
	}
	// An object whose members have other types than JSON-RPC says: mcp-go answers with the method's own complaint, the
	// transport only needs the id for it.
	var loose struct {
		ID     json.RawMessage `json:"id"`
		Method any             `json:"method"`
	}
	_ = json.Unmarshal(line, &loose)
	e.ID = loose.ID
	e.Method, _ = loose.Method.(string)
	if e.Method == "" && len(e.ID) > 0 {
		return e, &rpcError{Code: codeInvalidRequest, ID: e.ID, Message: "the message has no method as a string"}
	}
	return e, nil
}
