package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
)

// sessions knows the sessions of the protocols before 2026-07-28. mcp-go's own managers take ids that were never given
// out, or remember ended ones for ever.
type sessions struct {
	most  int
	now   func() time.Time
	ended func(id string)

	mu   sync.Mutex
	open map[string]*openSession
}

type openSession struct {
	used    time.Time
	streams []*exchange // GET streams that are open: such a session is not idle
	life    context.Context
	end     context.CancelFunc
}

func newSessions(most int, now func() time.Time, ended func(id string)) *sessions {
	return &sessions{most: most, now: now, ended: ended, open: map[string]*openSession{}}
}

// Generate opens a session under an id that can't be guessed.
func (s *sessions) Generate() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it aborts the program instead
	id := hex.EncodeToString(b[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &openSession{used: s.now()}
	o.life, o.end = context.WithCancel(context.Background())
	s.open[id] = o
	return id
}

// Validate reports an id that names no open session as an error. None counts as terminated: those are forgotten.
func (s *sessions) Validate(id string) (isTerminated bool, err error) {
	if !s.known(id) {
		return false, fmt.Errorf("no session %q", id)
	}
	return false, nil
}

// Terminate ends a session; every client may end its own.
func (s *sessions) Terminate(id string) (isNotAllowed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open[id]; o != nil {
		o.end()
		delete(s.open, id)
		s.ended(id)
	}
	return false, nil
}

// life gives a context that ends with the session.
func (s *sessions) life(id string) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open[id]; o != nil {
		return o.life
	}
	over, end := context.WithCancel(context.Background())
	end()
	return over
}

func (s *sessions) known(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id] != nil
}

// full says whether another session has no room. Two that come at the same moment may both be told that it has.
func (s *sessions) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) >= s.most
}

// touch says that a session is in use.
func (s *sessions) touch(id string) { s.with(id, func(*openSession) {}) }

// listen adds a stream to a session, leave takes it away.
func (s *sessions) listen(id string, x *exchange) {
	s.with(id, func(o *openSession) { o.streams = append(o.streams, x) })
}

func (s *sessions) leave(id string, x *exchange) {
	s.with(id, func(o *openSession) {
		o.streams = slices.DeleteFunc(o.streams, func(one *exchange) bool { return one == x })
	})
}

// stream gives one stream of a session, the newest; nil if it has none. A message goes to one of them only.
func (s *sessions) stream(id string) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open[id]; o != nil && len(o.streams) > 0 {
		return o.streams[len(o.streams)-1]
	}
	return nil
}

func (s *sessions) with(id string, f func(*openSession)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open[id]; o != nil {
		o.used = s.now()
		f(o)
	}
}

// idle names the sessions without a stream that were not used for so long.
func (s *sessions) idle(limit time.Duration) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for id, o := range s.open {
		if len(o.streams) == 0 && s.now().Sub(o.used) >= limit {
			ids = append(ids, id)
		}
	}
	return ids
}

// all names the open sessions.
func (s *sessions) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}

// forget ends a session in mcp-go too, which only does so for a request to.
func (h *HTTP) forget(id string) {
	h.inner.Handle(discarded{}, &mcpserver.HTTPRequest{Method: http.MethodDelete, Header: http.Header{mcpserver.HeaderKeySessionID: {id}}, Context: context.Background()})
}

// discarded takes the answer of a request that we made ourselves.
type discarded struct{}

// Header is a header nobody reads.
func (discarded) Header() http.Header { return http.Header{} }

// WriteHeader does nothing.
func (discarded) WriteHeader(int) {}

// Write does nothing.
func (discarded) Write(p []byte) (int, error) { return len(p), nil }

// Flush does nothing.
func (discarded) Flush() {}

// CanStream says no.
func (discarded) CanStream() bool { return false }

// clients counts what each client asks for. A client may send a second's worth of its rate at once.
type clients struct {
	rate       float64
	concurrent int
	now        func() time.Time

	mu  sync.Mutex
	all map[string]*client
}

type client struct {
	tokens  float64 // requests it may send now
	at      time.Time
	running int
}

// manyClients is when those are looked for that ask for nothing any more.
const manyClients = 1024

func newClients(rate float64, concurrent int, now func() time.Time) *clients {
	return &clients{rate: rate, concurrent: concurrent, now: now, all: map[string]*client{}}
}

// enter counts a request in; leave counts it out.
func (c *clients) enter(name string) (leave func(), no *refused) {
	c.mu.Lock()
	defer c.mu.Unlock()
	burst := max(c.rate, 1)
	now := c.now()
	if len(c.all) >= manyClients {
		maps.DeleteFunc(c.all, func(_ string, one *client) bool {
			return one.running == 0 && one.tokens+now.Sub(one.at).Seconds()*c.rate >= burst
		})
	}
	one := c.all[name]
	if one == nil {
		one = &client{tokens: burst, at: now}
		c.all[name] = one
	}
	one.tokens = min(burst, one.tokens+now.Sub(one.at).Seconds()*c.rate)
	one.at = now
	if one.tokens < 1 {
		wait := time.Duration(math.Ceil((1-one.tokens)/c.rate)) * time.Second
		return nil, &refused{status: http.StatusTooManyRequests, retry: wait, text: fmt.Sprintf("more than %g requests per second; send fewer, and wait on jobs with wait_seconds instead of asking again and again", c.rate)}
	}
	if one.running >= c.concurrent {
		return nil, &refused{status: http.StatusTooManyRequests, retry: time.Second, text: fmt.Sprintf("%d requests are being answered already; wait for one of them", one.running)}
	}
	one.tokens--
	one.running++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		one.running--
	}, nil
}
