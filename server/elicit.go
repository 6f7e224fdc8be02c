package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/redact"
)

// Questions to the user, in both eras. A tool that asks ends with inputNeeded and is called again from its start with the
// answer at hand, so that no lock is held and nothing is half done while the user thinks. Up to 2025-11-25 the question is a
// request of ours during the call; from 2026-07-28 on it is the call's result, and the client repeats the call.

const (
	// maxQuestions bounds what one call may ask.
	maxQuestions = 10
	// askPatience is how long a user may take to answer: as long as a call is held open for it, or as an answer counts.
	askPatience = 5 * time.Minute
	// maxName bounds what a client calls itself.
	maxName = 64
)

// inputNeeded ends a tool's call that can't go on without the user.
type inputNeeded struct {
	id       string
	question engine.Question
}

func (*inputNeeded) Error() string { return "the user has to be asked" }

// asked are the questions of one call of a tool.
type asked struct {
	able    bool // the client can show a form
	client  string
	answers map[string]engine.Answer
	// pending is the question that a repeated call brings the user's result for; what that means is known when it is asked.
	pending string
	result  *mcp.ElicitationResult
}

// Ask gives the user's answer, or the error that has the call made again with it.
func (c *caller) Ask(_ context.Context, q engine.Question) (engine.Answer, error) {
	id := questionID(q)
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.asked.answers[id]; ok {
		return answer, nil
	}
	if id == c.asked.pending {
		return c.keep(id, heard(q, c.asked.result)), nil
	}
	if !c.asked.able || len(c.asked.answers) >= maxQuestions {
		return engine.Answer{}, nil
	}
	return engine.Answer{}, &inputNeeded{id, q}
}

// answered keeps an answer for when the tool asks again.
func (c *caller) answered(id string, answer engine.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(id, answer)
}

func (c *caller) keep(id string, answer engine.Answer) engine.Answer {
	if answer.Reply != engine.Unable {
		answer.By = "user via " + c.asked.client
	}
	c.asked.answers[id] = answer
	return answer
}

// questionID names a question by all it says: an answer counts for nothing else.
func questionID(q engine.Question) string {
	b, _ := json.Marshal(q) // texts always encode
	sum := sha256.Sum256(b)
	return "q-" + hex.EncodeToString(sum[:8])
}

// form is the question as a client shows it.
func form(q engine.Question) mcp.ElicitationParams {
	field := map[string]any{"type": "boolean", "title": q.Field}
	if len(q.Choices) > 0 {
		field = map[string]any{"type": "string", "title": q.Field, "enum": q.Choices}
	}
	return mcp.ElicitationParams{Message: redact.Text(q.Text), RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{q.Field: field}, "required": []string{q.Field}}}
}

// heard reads what the user answered. A yes is a yes in the form, not the mere closing of it.
func heard(q engine.Question, result *mcp.ElicitationResult) engine.Answer {
	content, _ := result.Content.(map[string]any)
	switch result.Action {
	case mcp.ElicitationResponseActionDecline:
		return engine.Answer{Reply: engine.Declined}
	case mcp.ElicitationResponseActionAccept:
		switch said := content[q.Field].(type) {
		case bool:
			if said && len(q.Choices) == 0 {
				return engine.Answer{Reply: engine.Accepted}
			}
			return engine.Answer{Reply: engine.Declined}
		case string:
			if len(q.Choices) > 0 {
				return engine.Answer{Reply: engine.Accepted, Choice: said}
			}
		}
	}
	return engine.Answer{Reply: engine.Ignored}
}

// askedOf says whether the client of a request can show a form, and what it calls itself.
func askedOf(ctx context.Context) asked {
	var capability *mcp.ElicitationCapability
	var info mcp.Implementation
	if request := mcpserver.RequestProtocolInfoFromContext(ctx); request != nil && request.Modern {
		if request.ClientCapabilities != nil {
			capability = request.ClientCapabilities.Elicitation
		}
		if request.ClientInfo != nil {
			info = *request.ClientInfo
		}
	} else if session, ok := mcpserver.ClientSessionFromContext(ctx).(mcpserver.SessionWithClientInfo); ok {
		capability, info = session.GetClientCapabilities().Elicitation, session.GetClientInfo()
	}
	name := redact.Text(info.Name)
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	if name == "" {
		name = "an MCP client"
	}
	// A capability that names no mode is that of the versions which had but forms.
	able := capability != nil && (capability.Form != nil || capability.URL == nil)
	return asked{able: able, client: name, answers: map[string]engine.Answer{}}
}

// ask puts a question to the client within the call, as the protocols before 2026-07-28 have it. A client that answers with
// an error can't be asked; only the end of the call itself is an error.
func (s *Server) ask(ctx context.Context, q engine.Question) (engine.Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.askWait, errTooLate)
	defer cancel()
	raw, err := s.request(ctx, string(mcp.MethodElicitationCreate), form(q))
	switch {
	case errors.Is(err, errTooLate):
		return engine.Answer{Reply: engine.Ignored}, nil
	case ctx.Err() != nil:
		return engine.Answer{}, ctx.Err()
	case err != nil:
		s.log.Warn().Str("cause", scrub(err.Error())).Msg("the client could not ask its user")
		return engine.Answer{}, nil
	}
	var result mcp.ElicitationResult
	if err := json.Unmarshal(raw, &result); err != nil {
		s.log.Warn().Str("cause", scrub(err.Error())).Msg("the client's answer can't be read")
		return engine.Answer{Reply: engine.Ignored}, nil
	}
	return heard(q, &result), nil
}

var errTooLate = errors.New("the user took too long")

// inputRequired is the result that has a client of 2026-07-28 ask its user and repeat the call.
func (s *Server) inputRequired(call mcp.CallToolRequest, c *caller, needed *inputNeeded) *mcp.CallToolResult {
	state := s.seal(asking{Call: sumOf(call), ID: needed.id, Until: s.now().Add(s.askWait).Unix(), Answers: c.asked.answers})
	return mcpserver.NewInputRequestBuilder(state).Elicit(needed.id, form(needed.question)).ToolResult()
}

// asking is the state of a call between its rounds. It travels with the client, under our seal: only an answer to the
// question that we asked in this very call counts, and for as long as a user may take.
type asking struct {
	Call    string                   `json:"call"`
	ID      string                   `json:"id"`
	Until   int64                    `json:"until"`
	Answers map[string]engine.Answer `json:"answers"`
}

// returned takes the answer that a client of 2026-07-28 brings with its repeated call. One that belongs to another call, is
// too old or was changed is no answer: the question is asked anew.
func (s *Server) returned(call mcp.CallToolRequest, c *caller) {
	state, ok := s.unseal(call.Params.RequestState)
	if !ok || state.Call != sumOf(call) || s.now().Unix() > state.Until {
		return
	}
	for id, answer := range state.Answers {
		c.asked.answers[id] = answer
	}
	result := mcpserver.ElicitationResponse(call.Params.InputResponses, state.ID)
	if result == nil {
		return
	}
	c.asked.pending, c.asked.result = state.ID, result
}

// sumOf tells one call from another.
func sumOf(call mcp.CallToolRequest) string {
	sum := sha256.Sum256([]byte(call.Params.Name + "\n" + string(rawArguments(call))))
	return hex.EncodeToString(sum[:])
}

func (s *Server) seal(state asking) string {
	b, _ := json.Marshal(state) // texts and numbers always encode
	mac := hmac.New(sha256.New, s.sealKey())
	mac.Write(b)
	return base64.RawURLEncoding.EncodeToString(append(mac.Sum(nil), b...))
}

func (s *Server) unseal(text string) (state asking, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < sha256.Size {
		return state, false
	}
	mac := hmac.New(sha256.New, s.sealKey())
	mac.Write(b[sha256.Size:])
	return state, hmac.Equal(mac.Sum(nil), b[:sha256.Size]) && json.Unmarshal(b[sha256.Size:], &state) == nil
}

// newSealKey is a key for the life of a process: after a restart questions are asked anew.
func newSealKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails: it aborts the program instead
	return key
}
