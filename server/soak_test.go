package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/shirou/gopsutil/v4/process"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/tools"
)

const (
	// soakFor is how long the soak lasts where TRAINWRIGHT_SOAK does not say so.
	soakFor = 15 * time.Second
	// webClients and pipeClients are the clients at any time.
	webClients, pipeClients = 40, 10
	// heapGrowth is how much more may be held at the end than after the beginning, in bytes.
	heapGrowth = 8 << 20
)

// Fifty clients over both transports and in both eras call, cancel, leave in the middle and come again. Every call that
// is not given up has its one answer; afterwards there is no goroutine, descriptor, session or memory more than before.
// TRAINWRIGHT_SOAK=10m makes it long.
func TestSoak(t *testing.T) {
	lasts := soakFor
	if given := os.Getenv("TRAINWRIGHT_SOAK"); given != "" {
		var err error
		if lasts, err = time.ParseDuration(given); err != nil {
			t.Fatal(err)
		}
	}
	k := &soak{t: t}
	http.DefaultClient.CloseIdleConnections()
	before := census(t)
	k.open()
	k.crowd(2 * time.Second) // what grows once has grown
	warm := heap()
	k.crowd(lasts)
	if grown := int64(heap()) - int64(warm); grown > heapGrowth {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	k.close()
	t.Logf("%d calls answered, %d given up, %d connections", k.answered.Load(), k.givenUp.Load(), k.connections.Load())
	if k.answered.Load() < 1000 || k.givenUp.Load() < 100 || k.connections.Load() < 100 {
		t.Error("the clients did little")
	}
	if n := k.running.Load(); n != 0 {
		t.Errorf("%d calls still run", n)
	}
	limit := time.Now().Add(deadline)
	for now := census(t); now.goroutines > before.goroutines || now.descriptors > before.descriptors; now = census(t) {
		if time.Now().After(limit) {
			stacks := make([]byte, 1<<18)
			t.Fatalf("%+v, there were %+v:\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// counts are what a leak would grow.
type counts struct {
	goroutines  int
	descriptors int32
}

func census(t *testing.T) counts {
	t.Helper()
	self, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	descriptors, err := self.NumFDs()
	if err != nil { // not every system tells
		descriptors = 0
	}
	return counts{runtime.NumGoroutine(), descriptors}
}

// heap is what is held when everything that can be freed is.
func heap() uint64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// soak is the server, and what its clients came to.
type soak struct {
	t       *testing.T
	server  *Server
	site    *site
	entered sync.Map // by the key of a call: closed when its handler is reached

	running, answered, givenUp, connections atomic.Int64
}

func (k *soak) open() {
	counts := tool("counts", func(_ context.Context, c engine.Caller, arguments json.RawMessage) (tools.Result, error) {
		for i := 1; i <= 3; i++ {
			c.Progress(engine.Progress{Message: "m", Done: float64(i), Total: 3})
		}
		return tools.Result{Structured: arguments}, nil
	})
	waits := tool("waits", func(ctx context.Context, _ engine.Caller, arguments json.RawMessage) (tools.Result, error) {
		k.running.Add(1)
		defer k.running.Add(-1)
		if reached, known := k.entered.LoadAndDelete(string(arguments)); known {
			close(reached.(chan struct{}))
		}
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	})
	s := New(Options{Version: "test", Tools: []tools.Tool{echo, counts, waits}, Resources: shelf{}, Skills: demoSkills, Log: zerolog.Nop()})
	k.server, k.site = s, openOn(k.t, HTTPOptions{Rate: 1e6, Concurrent: 1000, MaxSessions: 1 << 20, SessionIdle: 30 * time.Second}, s, &safeBuffer{})
}

func (k *soak) close() {
	k.site.stop()
	if err := <-k.site.done; err != nil {
		k.t.Error(err)
	}
	isQuiet(k.t, k.server)
	if n := len(k.site.http.sessions.all()); n != 0 {
		k.t.Errorf("%d sessions are open", n)
	}
}

// crowd lets the clients at the server for a time.
func (k *soak) crowd(lasts time.Duration) {
	end := time.Now().Add(lasts)
	var all sync.WaitGroup
	for n := range webClients + pipeClients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), uint64(lasts)))
			for visit := 0; time.Now().Before(end) && !k.t.Failed(); visit++ {
				k.connections.Add(1)
				v := visitor{soak: k, random: random, name: fmt.Sprintf("%d-%d-%d", lasts, n, visit)}
				if n < webClients {
					v.web(n%2 == 0)
				} else {
					v.pipe()
				}
			}
		})
	}
	all.Wait()
}

// visitor is one connection of a client.
type visitor struct {
	*soak
	random *rand.Rand
	name   string
}

// line is a call whose argument names it, so that an answer can be told from another's.
func (v *visitor) line(id int, tool string) (line, key string) {
	key = fmt.Sprintf(`{"x":"%s/%d"}`, v.name, id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":%d}}}`, id, tool, key, id), key
}

// expect gives a channel that is closed when the handler of a call is reached.
func (v *visitor) expect(key string) chan struct{} {
	reached := make(chan struct{})
	v.entered.Store(key, reached)
	return reached
}

// web makes a dozen calls over HTTP, with a session or without, and ends the session or leaves it behind.
func (v *visitor) web(modernEra bool) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var session []string
	if !modernEra {
		_, header := v.post(client, initializeLine)
		session = []string{"Mcp-Session-Id", header.Get("Mcp-Session-Id")}
		ctx, leave := context.WithCancel(v.t.Context())
		listening := v.listen(ctx, client, session)
		defer func() { leave(); <-listening; v.finish(client, session) }()
	}
	for id := range 12 {
		tool := []string{"echo", "echo", "counts", "waits"}[v.random.IntN(4)]
		body, key := v.line(id, tool)
		header := session
		if modernEra {
			body, header = modern(id, "tools/call", tool, map[string]any{"name": tool, "arguments": json.RawMessage(key)})
		}
		if tool == "waits" {
			v.giveUp(client, id, key, body, header, modernEra)
			continue
		}
		messages, _ := v.post(client, body, header...)
		v.judge(messages, id, tool, key)
	}
}

// post sends a message and gives all that came back.
func (v *visitor) post(client *http.Client, body string, header ...string) ([]reply, http.Header) {
	response, err := client.Do(v.site.request(v.t.Context(), body, header...))
	if err != nil {
		v.t.Errorf("%s: %v", v.name, err)
		return nil, http.Header{}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		v.t.Errorf("%s: %s %s %v", v.name, response.Status, text, err)
	}
	var messages []reply
	for line := range strings.Lines(string(text)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		var r reply
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &r) == nil {
			messages = append(messages, r)
		}
	}
	return messages, response.Header
}

// judge checks that a call's own progress came in order, and its own answer once and last.
func (v *visitor) judge(messages []reply, id int, tool, key string) {
	want := 1
	if tool == "counts" {
		want = 4
	}
	if len(messages) != want {
		v.t.Errorf("%s: %d messages for call %d of %s: %+v", v.name, len(messages), id, tool, messages)
		return
	}
	for i, m := range messages[:want-1] {
		if m.Method != "notifications/progress" || m.Params["progress"] != float64(i+1) {
			v.t.Errorf("%s: message %d of call %d: %+v", v.name, i, id, m)
		}
	}
	v.answer(messages[want-1], id, key)
}

func (v *visitor) answer(r reply, id int, key string) {
	var got struct {
		StructuredContent json.RawMessage
	}
	if err := json.Unmarshal(r.Result, &got); err != nil || string(r.ID) != fmt.Sprint(id) || string(got.StructuredContent) != key {
		v.t.Errorf("%s: call %d is answered with %s %s %+v", v.name, id, r.ID, r.Result, r.Error)
	}
	v.answered.Add(1)
}

// giveUp makes a call that waits, and when it does, cancels it or leaves. Without sessions leaving is cancelling.
func (v *visitor) giveUp(client *http.Client, id int, key, body string, header []string, modernEra bool) {
	reached := v.expect(key)
	ctx, leave := context.WithCancel(v.t.Context())
	defer leave()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		response, err := client.Do(v.site.request(ctx, body, header...))
		if err != nil {
			return // left
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && strings.Contains(string(text), `"result"`) && strings.Count(string(text), `"code":"cancelled"`) != 1 {
			v.t.Errorf("%s: call %d was cancelled and is answered: %s", v.name, id, text)
		}
	}()
	if !v.reaches(reached) {
		return
	}
	if modernEra || v.random.IntN(2) == 0 {
		leave()
	} else {
		v.post(client, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id), header...)
	}
	<-gone
	v.givenUp.Add(1)
}

func (v *visitor) reaches(reached chan struct{}) bool {
	select {
	case <-reached:
		return true
	case <-time.After(deadline):
		v.t.Errorf("%s: a call does not reach its handler", v.name)
		return false
	}
}

// listen opens the stream of a session; the channel is closed when it has ended.
func (v *visitor) listen(ctx context.Context, client *http.Client, session []string) chan struct{} {
	done := make(chan struct{})
	r := v.site.request(ctx, "", session...)
	r.Method = http.MethodGet
	go func() {
		defer close(done)
		response, err := client.Do(r)
		if err != nil {
			return // it left before
		}
		defer response.Body.Close()
		got, err := io.ReadAll(response.Body)
		if err != nil && !errors.Is(err, context.Canceled) {
			v.t.Errorf("%s: the stream breaks: %v", v.name, err)
		}
		if strings.Contains(string(got), "data: ") {
			v.t.Errorf("%s: the stream has what belongs to a call: %s", v.name, got)
		}
	}()
	return done
}

// finish ends a session, or leaves it for the server to find.
func (v *visitor) finish(client *http.Client, session []string) {
	if v.random.IntN(8) == 0 {
		return
	}
	r := v.site.request(v.t.Context(), "", session...)
	r.Method = http.MethodDelete
	response, err := client.Do(r)
	if err != nil {
		v.t.Errorf("%s: %v", v.name, err)
		return
	}
	_ = response.Body.Close()
}

// pipe makes a burst of calls over pipes, all at once, and cancels those that wait; then it closes its end, at times with
// a call under way.
func (v *visitor) pipe() {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	s := v.server // of stdio there is one at a time on a server
	one := New(Options{Version: "test", Tools: s.tools, Resources: s.resources, Skills: s.skills, Log: s.log})
	go func() {
		done <- NewStdio(one).Serve(v.t.Context(), inR, outW)
		_ = outW.Close()
	}()
	replies := make(chan reply, 64)
	go func() {
		defer close(replies)
		decoder := json.NewDecoder(outR)
		for {
			var r reply
			if decoder.Decode(&r) != nil {
				return
			}
			if r.Method == "" { // the order of progress is another test's matter
				replies <- r
			}
		}
	}()
	send := func(line string) { _, _ = io.WriteString(inW, line+"\n") } // a server that is gone gives no answers, which is seen
	send(initializeLine)
	<-replies
	v.burst(send, replies)
	if v.random.IntN(2) == 0 {
		line, key := v.line(99, "waits")
		reached := v.expect(key)
		send(line)
		v.reaches(reached)
		v.givenUp.Add(1)
	}
	_ = inW.Close()
	if err := <-done; err != nil {
		v.t.Errorf("%s: %v", v.name, err)
	}
	late := 0
	for r := range replies {
		if late++; string(r.ID) != "99" || !strings.Contains(string(r.Result), `"code":"cancelled"`) {
			v.t.Errorf("%s: %s is answered too late: %s", v.name, r.ID, r.Result)
		}
	}
	if late > 1 {
		v.t.Errorf("%s: the last call has %d answers", v.name, late)
	}
}

func (v *visitor) burst(send func(string), replies <-chan reply) {
	keys := map[string]string{} // of the calls that are to be answered, by id
	for id := range 20 {
		tool := []string{"echo", "counts", "waits"}[v.random.IntN(3)]
		line, key := v.line(id, tool)
		if tool != "waits" {
			keys[fmt.Sprint(id)] = key
			send(line)
			continue
		}
		send(line)
		send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		v.givenUp.Add(1)
	}
	ids := make([]string, 0, len(keys))
	for len(ids) < len(keys) {
		var r reply
		select {
		case r = <-replies:
		case <-time.After(deadline):
			v.t.Errorf("%s: %d of %d answers came", v.name, len(ids), len(keys))
			return
		}
		id := string(r.ID)
		if slices.Contains(ids, id) || keys[id] == "" {
			v.t.Errorf("%s: a second answer, or one that nobody asked for: %+v", v.name, r)
		}
		ids = append(ids, id)
		var number int
		_, _ = fmt.Sscan(id, &number) // an id that is no number has failed above
		v.answer(r, number, keys[id])
	}
}
