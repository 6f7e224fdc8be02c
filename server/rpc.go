package server

import (
	"encoding/json"
	"errors"
)

// JSON-RPC 2.0 error codes, section 5.1 of its specification.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
)

// rpcError is a JSON-RPC error that the transport answers on its own, before or instead of mcp-go.
type rpcError struct {
	ID      json.RawMessage
	Code    int
	Message string
}

// encode renders the error as one message. Without an id the specification wants null.
func (e *rpcError) encode() []byte {
	id := e.ID
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	type details struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	b, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   details         `json:"error"`
	}{"2.0", id, details{e.Code, e.Message}})
	if err != nil { // only an id that is not JSON can get here, and peek has parsed it
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"unencodable error"}}`)
	}
	return b
}

func asSyntax(err error, into **json.SyntaxError) bool { return errors.As(err, into) }
