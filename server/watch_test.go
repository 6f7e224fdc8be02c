package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainwright/trainwright/resources"
)

// living is a Library whose resources change, and that counts how often it is looked at.
type living struct {
	mu    sync.Mutex
	texts map[string]string
	looks int
}

func newLiving() *living {
	return &living{texts: map[string]string{"run://r-1/run.json": "a", "run://r-1/other.json": "a"}}
}

func (l *living) set(uri, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts[uri] = text
}

func (l *living) looked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks
}

func (l *living) List(context.Context, string) ([]resources.Item, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	var items []resources.Item
	for uri := range l.texts {
		items = append(items, resources.Item{URI: uri, Name: uri, MIME: "text/plain", Size: 1})
	}
	if len(items) > 1 && items[0].URI > items[1].URI {
		items[0], items[1] = items[1], items[0]
	}
	return items, "", nil
}

func (l *living) Read(_ context.Context, uri string) (resources.Content, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	text, ok := l.texts[uri]
	if !ok {
		return resources.Content{}, fmt.Errorf("%s: %w", uri, resources.ErrNotFound)
	}
	return resources.Content{URI: uri, Text: text, Total: int64(len(text))}, nil
}

func subscribeLine(id int, method, uri string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/%s","params":{"uri":%q}}`, id, method, uri)
}

// A change is told to who subscribed, once; before that and after the end nobody looks at the disk.
func TestSubscriptionsOverStdio(t *testing.T) {
	library := newLiving()
	s, log := newServerOver(library)
	p := connectTo(t, s, log)
	p.initialize()
	p.send(subscribeLine(1, "subscribe", "run://r-1/run.json"), subscribeLine(2, "subscribe", "run://r-1/later.json"))
	for range 2 {
		if r := p.next(); r.Error != nil {
			t.Fatalf("%+v", r.Error)
		}
	}
	for _, uri := range []string{"run://r-1/run.json", "run://r-1/later.json"} {
		library.set(uri, "b")
		if r := p.next(); r.Method != "notifications/resources/updated" || r.Params["uri"] != uri {
			t.Errorf("%s: %+v", uri, r)
		}
	}
	library.set("run://r-1/other.json", "b")
	p.send(subscribeLine(3, "unsubscribe", "run://r-1/run.json"))
	p.next()
	p.send(subscribeLine(4, "unsubscribe", "run://r-1/later.json"))
	if r := p.next(); string(r.ID) != "4" {
		t.Errorf("told of what nobody asked for: %+v", r)
	}
	isQuiet(t, s)
}

// isQuiet wants that no goroutine looks any more.
func isQuiet(t *testing.T, s *Server) {
	t.Helper()
	limit := time.Now().Add(deadline)
	for {
		s.watch.mu.Lock()
		quiet := s.watch.stop == nil && len(s.watch.watched) == 0
		s.watch.mu.Unlock()
		if quiet {
			return
		}
		if time.Now().After(limit) {
			t.Fatal("the watcher still looks")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestNobodySubscribedNobodyLooks(t *testing.T) {
	library := newLiving()
	s, log := newServerOver(library)
	p := connectTo(t, s, log)
	p.initialize()
	p.send(callLine(1, "none"))
	p.next()
	isQuiet(t, s)
	if n := library.looked(); n != 0 {
		t.Errorf("%d looks at the disk", n)
	}
}

func TestWhatCantBeSubscribedTo(t *testing.T) {
	s, log := newServerOver(newLiving())
	p := connectTo(t, s, log)
	p.initialize()
	for _, uri := range []string{"file:///etc/passwd", "skill://none/SKILL.md", "x"} {
		p.send(subscribeLine(1, "subscribe", uri))
		if r := p.next(); r.Error == nil || r.Error.Code != codeNotFound {
			t.Errorf("%s: %+v", uri, r)
		}
	}
	for i := range maxWatched + 1 {
		p.send(subscribeLine(i, "subscribe", fmt.Sprintf("run://r-1/f%d", i)))
		if r := p.next(); (r.Error != nil) != (i == maxWatched) {
			t.Errorf("subscription %d: %+v", i, r.Error)
		}
	}
}

// What is told of is a change of what a resource is: of a job its state, not its seconds; of a long file its bytes that a
// read does not show, too.
func TestWhatAChangeIs(t *testing.T) {
	library := &versioned{}
	library.set(resources.Content{URI: "job://j-1", Text: "1 s", Total: 3, Version: "running"})
	s, log := newServerOver(library)
	p := connectTo(t, s, log)
	p.initialize()
	p.send(subscribeLine(1, "subscribe", "job://j-1"))
	if r := p.next(); r.Error != nil {
		t.Fatalf("%+v", r.Error)
	}
	library.set(resources.Content{URI: "job://j-1", Text: "2 s", Total: 3, Version: "running"})
	library.seen(t)
	library.set(resources.Content{URI: "job://j-1", Text: "2 s", Total: 3, Version: "failed"})
	if r := p.next(); r.Method != "notifications/resources/updated" || r.Params["uri"] != "job://j-1" {
		t.Errorf("%+v", r)
	}
	if stamped, err := s.watch.stamp(t.Context(), "job://j-1"); err != nil || stamped != "failed" {
		t.Errorf("%q, %v", stamped, err)
	}
	long := resources.Content{URI: "job://j-1", Text: "the beginning", Total: 1000, Cut: true, ModTime: time.Unix(1, 0)}
	library.set(long)
	p.next()
	library.seen(t)
	long.ModTime = time.Unix(2, 0)
	library.set(long)
	if r := p.next(); r.Method != "notifications/resources/updated" {
		t.Errorf("%+v", r)
	}
	for _, uri := range []string{"workspace:///to/come.csv", "job://j-1/stderr.log"} {
		library.gone.Store(true)
		p.send(subscribeLine(2, "subscribe", uri))
		for r := p.next(); ; r = p.next() {
			if string(r.ID) == "2" {
				if r.Error != nil {
					t.Errorf("%s: %+v", uri, r.Error)
				}
				break
			}
		}
	}
}

// versioned is a Library of one content, that counts how often it is looked at.
type versioned struct {
	mu      sync.Mutex
	content resources.Content
	looks   int
	gone    atomic.Bool
}

func (v *versioned) set(c resources.Content) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.content, v.looks = c, 0
}

// seen waits until the content was looked at twice: what was told of the first look is queued then.
func (v *versioned) seen(t *testing.T) {
	t.Helper()
	for limit := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		v.mu.Lock()
		looks := v.looks
		v.mu.Unlock()
		if looks >= 2 {
			return
		}
		if time.Now().After(limit) {
			t.Fatal("nobody looks")
		}
	}
}

func (v *versioned) List(context.Context, string) ([]resources.Item, string, error) {
	return nil, "", nil
}

func (v *versioned) Read(_ context.Context, uri string) (resources.Content, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.looks++
	if v.gone.Load() {
		return resources.Content{}, fmt.Errorf("%s: %w", uri, resources.ErrNotFound)
	}
	return v.content, nil
}

// A client that has seen the list hears when it is another one.
func TestTheListChanged(t *testing.T) {
	library := newLiving()
	s, log := newServerOver(library)
	p := connectTo(t, s, log)
	p.initialize()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
	p.next()
	library.mu.Lock()
	delete(library.texts, "run://r-1/other.json")
	library.mu.Unlock()
	if r := p.next(); r.Method != "notifications/resources/list_changed" {
		t.Errorf("%+v", r)
	}
	_ = p.in.Close()
	p.ended(time.Second)
	isQuiet(t, s)
}

// events reads the messages of an event stream.
type events struct {
	t     *testing.T
	lines *bufio.Reader
}

func (e events) next() reply {
	e.t.Helper()
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			e.t.Fatalf("the stream ends: %v", err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var r reply
			if err := json.Unmarshal([]byte(data), &r); err != nil {
				e.t.Fatal(err)
			}
			return r
		}
	}
}

// stream opens an event stream; leave ends it.
func (w *site) stream(r *http.Request) (e events, leave func()) {
	w.t.Helper()
	ctx, leave := context.WithCancel(w.t.Context())
	response, err := http.DefaultClient.Do(r.WithContext(ctx))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("status %d", response.StatusCode)
	}
	return events{w.t, bufio.NewReader(response.Body)}, leave
}

// A session hears of its subscriptions on the stream that it listens on, and no longer than it lives.
func TestSubscriptionsOfASession(t *testing.T) {
	library := newLiving()
	s, log := newServerOver(library)
	w := openOn(t, HTTPOptions{}, s, log)
	session := w.session()
	get := w.request(t.Context(), "", session...)
	get.Method = http.MethodGet
	stream, leave := w.stream(get)
	defer leave()
	if a := w.post(subscribeLine(1, "subscribe", "run://r-1/run.json"), session...); a.status != 200 || a.last().Error != nil {
		t.Fatal(a.body)
	}
	if a := w.post(subscribeLine(2, "subscribe", "file:///x"), session...); a.last().Error == nil || a.last().Error.Code != codeNotFound {
		t.Error(a.body)
	}
	library.set("run://r-1/run.json", "b")
	if r := stream.next(); r.Method != "notifications/resources/updated" || r.Params["uri"] != "run://r-1/run.json" {
		t.Errorf("%+v", r)
	}
	ending := w.request(t.Context(), "", session...)
	ending.Method = http.MethodDelete
	w.do(ending)
	isQuiet(t, s)
}

// Without sessions a subscription is a stream of its own, whose notifications carry its id, and ends with it.
func TestListening(t *testing.T) {
	library := newLiving()
	s, log := newServerOver(library)
	w := openOn(t, HTTPOptions{}, s, log)
	body, header := modern("sub", "subscriptions/listen", "", map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{"run://r-1/run.json"}, "resourcesListChanged": true}})
	stream, leave := w.stream(w.request(t.Context(), body, header...))
	if r := stream.next(); r.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("%+v", r)
	}
	tagged := func(r reply) bool {
		meta, _ := r.Params["_meta"].(map[string]any)
		return meta["io.modelcontextprotocol/subscriptionId"] == "sub"
	}
	library.set("run://r-1/run.json", "b")
	if r := stream.next(); r.Method != "notifications/resources/updated" || r.Params["uri"] != "run://r-1/run.json" || !tagged(r) {
		t.Errorf("%+v", r)
	}
	library.mu.Lock()
	delete(library.texts, "run://r-1/other.json")
	library.mu.Unlock()
	if r := stream.next(); r.Method != "notifications/resources/list_changed" || !tagged(r) {
		t.Errorf("%+v", r)
	}
	leave()
	isQuiet(t, s)

	body, header = modern(1, "subscriptions/listen", "", map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{"run://r-1/run.json", "file:///x"}}})
	if a := w.post(body, header...); a.status != 400 || a.last().Error == nil || a.last().Error.Code != codeInvalidParams {
		t.Errorf("%d %s", a.status, a.body)
	}
	isQuiet(t, s)
}

// Over stdio every listening request has its own tag.
func TestListeningOverStdio(t *testing.T) {
	library := newLiving()
	s, log := newServerOver(library)
	p := connectTo(t, s, log)
	body, _ := modern(5, "subscriptions/listen", "", map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{"run://r-1/run.json"}}})
	p.send(body)
	if r := p.next(); r.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("%+v", r)
	}
	library.set("run://r-1/run.json", "b")
	r := p.next()
	if meta, _ := r.Params["_meta"].(map[string]any); r.Method != "notifications/resources/updated" || meta["io.modelcontextprotocol/subscriptionId"] != 5.0 {
		t.Errorf("%+v", r)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	isQuiet(t, s)
}
