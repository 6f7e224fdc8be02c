package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/resources"
)

const (
	// watchEvery is the time between two looks at what is subscribed to, and listTicks how many of them lie between
	// two looks at the list of resources, which costs more and matters less.
	watchEvery = time.Second
	listTicks  = 5
	// maxWatched is how many addresses one client may subscribe to.
	maxWatched = 64
	// theList is what stands for the list of resources among the addresses.
	theList = ""
	// absent is the stamp of what is not there.
	absent = "absent"
)

// tell sends a notification to one client, and drops it if the client has no room for it.
type tell func(method string, params map[string]any)

// watcher looks at the resources that clients have subscribed to, and says when one has changed. Runs and jobs change
// on disk, by other processes too, so it looks; while nobody is subscribed it does nothing.
type watcher struct {
	library Library
	every   time.Duration
	log     zerolog.Logger

	mu      sync.Mutex
	watched map[string]*watched // by address
	stop    context.CancelFunc  // of the goroutine that looks; nil while there is none
}

type watched struct {
	stamp string // what it was when it was last looked at
	tells map[string]tell
}

func newWatcher(library Library, every time.Duration, log zerolog.Logger) *watcher {
	if every <= 0 {
		every = watchEvery
	}
	return &watcher{library: library, every: every, log: log, watched: map[string]*watched{}}
}

// add subscribes a client. What changes after it returned is told. An address of a run, a job or the workspace may name a
// file that is still to come; one that can't be read now may be readable later.
func (w *watcher) add(ctx context.Context, owner, uri string, t tell) error {
	stamp, err := w.stamp(ctx, uri)
	if err != nil {
		w.log.Debug().Str("uri", uri).Str("cause", scrub(err.Error())).Msg("a watched resource can't be read")
	}
	scheme, _, _ := strings.Cut(uri, "://")
	if errors.Is(err, resources.ErrInvalid) {
		return err
	}
	if stamp == absent && scheme != "run" && scheme != "job" && scheme != "workspace" {
		return errors.New(unknownAddress(uri))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count(owner) >= maxWatched {
		return fmt.Errorf("%d addresses are subscribed to already, the most there may be; unsubscribe from one first", maxWatched)
	}
	one := w.watched[uri]
	if one == nil {
		one = &watched{stamp: stamp, tells: map[string]tell{}}
		w.watched[uri] = one
	}
	one.tells[owner] = t
	if w.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		w.stop = stop
		go w.run(ctx)
	}
	return nil
}

func (w *watcher) count(owner string) int {
	n := 0
	for _, one := range w.watched {
		if _, its := one.tells[owner]; its {
			n++
		}
	}
	return n
}

// remove ends one subscription of a client.
func (w *watcher) remove(owner, uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(owner, uri)
}

// drop ends all subscriptions of a client.
func (w *watcher) drop(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uri := range w.watched {
		w.forget(owner, uri)
	}
}

func (w *watcher) forget(owner, uri string) {
	one := w.watched[uri]
	if one == nil {
		return
	}
	if delete(one.tells, owner); len(one.tells) == 0 {
		delete(w.watched, uri)
	}
	if len(w.watched) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

func (w *watcher) run(ctx context.Context) {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
			w.look(ctx, n%listTicks == 0)
		case <-ctx.Done():
			return
		}
	}
}

// look compares everything that is watched with what it was.
func (w *watcher) look(ctx context.Context, listToo bool) {
	w.mu.Lock()
	uris := make([]string, 0, len(w.watched))
	for uri := range w.watched {
		if uri != theList || listToo {
			uris = append(uris, uri)
		}
	}
	w.mu.Unlock()
	for _, uri := range uris {
		stamp, err := w.stamp(ctx, uri)
		if err != nil || ctx.Err() != nil {
			continue
		}
		for _, t := range w.changed(uri, stamp) {
			if uri == theList {
				t("notifications/resources/list_changed", map[string]any{})
				continue
			}
			t("notifications/resources/updated", map[string]any{"uri": uri})
		}
	}
}

// changed keeps what a resource is now, and gives those to tell if it was something else.
func (w *watcher) changed(uri, stamp string) []tell {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.watched[uri]
	if one == nil || one.stamp == stamp {
		return nil
	}
	one.stamp = stamp
	tells := make([]tell, 0, len(one.tells))
	for _, t := range one.tells {
		tells = append(tells, t)
	}
	return tells
}

// stamp sums up what a resource is now: its version where it has one, else its size and the part of it that a read would
// give. That a file is not there is a state too.
func (w *watcher) stamp(ctx context.Context, uri string) (string, error) {
	sum := sha256.New()
	if uri == theList {
		items, _, err := w.library.List(ctx, "")
		if err != nil {
			return "", fmt.Errorf("list the resources: %w", err)
		}
		for _, item := range items {
			fmt.Fprintln(sum, item.URI, item.Title, item.Description)
			if strings.HasPrefix(item.URI, "skill://") { // its digests are others: skills/list is to be asked again
				fmt.Fprintln(sum, item.Size)
			}
		}
		return hex.EncodeToString(sum.Sum(nil)), nil
	}
	c, err := w.library.Read(ctx, uri)
	if errors.Is(err, resources.ErrNotFound) {
		return absent, nil
	}
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", uri, err)
	}
	if c.Version != "" {
		return c.Version, nil
	}
	if c.Cut { // what is not shown may have changed too
		fmt.Fprintln(sum, c.ModTime.UnixNano())
	}
	fmt.Fprintln(sum, c.Total, c.Text)
	sum.Write(c.Blob)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// follow does what a message asks of the watcher, in both eras, before mcp-go answers it: mcp-go keeps no subscription
// of an HTTP session. stop ends what lasts as long as the request. A fault is the answer, and the message goes no
// further.
func (s *Server) follow(ctx context.Context, owner string, message envelope, raw []byte, t tell) (stop func(), fault *rpcError) {
	stop = func() {}
	switch message.Method {
	case "resources/subscribe", "resources/unsubscribe", "resources/list", "subscriptions/listen":
	default:
		return stop, nil
	}
	var request struct {
		Params struct {
			Meta          *mcp.Meta              `json:"_meta"`
			URI           string                 `json:"uri"`
			Notifications mcp.SubscriptionFilter `json:"notifications"`
		} `json:"params"`
	}
	if json.Unmarshal(raw, &request) != nil {
		return stop, nil // mcp-go complains of it
	}
	modern := mcp.IsModernProtocol(request.Params.Meta.ProtocolVersion())
	var err error
	code := codeNotFound
	switch {
	case message.Method == "subscriptions/listen" && modern:
		code = codeInvalidParams
		stop, err = s.listen(ctx, owner+" "+s.newID(), message.ID, request.Params.Notifications, t)
	case modern: // mcp-go says what replaced them; a list is no wish to hear of it there
	case message.Method == "resources/subscribe" && request.Params.URI != "":
		err = s.watch.add(ctx, owner, request.Params.URI, t)
	case message.Method == "resources/unsubscribe":
		s.watch.remove(owner, request.Params.URI)
	case message.Method == "resources/list":
		_ = s.watch.add(ctx, owner, theList, t) // a client that can't be told of a change asks again
	}
	if err != nil {
		return stop, &rpcError{ID: message.ID, Code: code, Message: scrub(err.Error())}
	}
	return stop, nil
}

// listen subscribes a stream to what its filter names; every notification on it carries the id of the request.
func (s *Server) listen(ctx context.Context, owner string, id json.RawMessage, filter mcp.SubscriptionFilter, t tell) (stop func(), err error) {
	tagged := func(method string, params map[string]any) {
		params["_meta"] = map[string]any{mcp.MetaKeySubscriptionID: id}
		t(method, params)
	}
	stop = func() { s.watch.drop(owner) }
	uris := filter.ResourceSubscriptions
	if filter.ResourcesListChanged {
		uris = append(uris, theList)
	}
	for _, uri := range uris {
		if err := s.watch.add(ctx, owner, uri, tagged); err != nil {
			stop()
			return func() {}, err
		}
	}
	return stop, nil
}
