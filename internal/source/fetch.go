package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// The limits of one fetch.
const (
	MaxBytes     = 8 << 20 // of a page, after decompression
	MaxTime      = 30 * time.Second
	MaxRedirects = 5
)

// Resolver leads a name to addresses; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Fetcher fetches pages. The zero value reaches public addresses only, within the limits above.
type Fetcher struct {
	// Addresses are ranges that may be reached although they are not public; the user's policy names them.
	Addresses []netip.Prefix
	Resolver  Resolver // net.DefaultResolver when nil
	Time      time.Duration
	Bytes     int64
}

// Page is what an address answered. SHA256 is of the body after decompression, as "sha256:<hex>".
type Page struct {
	URL    string // after redirects
	Status int
	Type   string // the media type that the server gave
	ETag   string
	Bytes  int64
	SHA256 string
	Text   string // what can be quoted; "" for a page that holds no text
	Notes  []string
}

// refused is why a connection was not made.
type refused struct{ host, address, why string }

func (r *refused) Error() string {
	return fmt.Sprintf("%s leads to %s, which is %s", r.host, r.address, r.why)
}

// errRedirect and errScheme end a chain of redirects.
var (
	errRedirects = errors.New("too many redirects")
	errScheme    = errors.New("a redirect to something else than http or https, or from https to http")
)

// Fetch gets a page once. No proxy of the environment is used, since it would hide which address is reached; no cookie, credential or
// referrer is sent. What can't be had is refused: url_invalid, address_refused, redirect_refused, fetch_timeout, fetch_failed,
// http_status, fetch_too_large, source_not_text.
func (f Fetcher) Fetch(ctx context.Context, address string) (Page, error) {
	where, err := url.Parse(address)
	if err != nil || where.Hostname() == "" || where.Scheme != "http" && where.Scheme != "https" {
		return Page{}, f.refuse("url_invalid", address, "it is no address of the web", "http:// or https:// and a host", "correct the URL")
	}
	if where.User != nil {
		where.User = nil
		return Page{}, f.refuse("url_invalid", where.String(), "it holds a name or password", "a URL without credentials", "save the page to a file and name that")
	}
	limit := f.Time
	if limit <= 0 {
		limit = MaxTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	client := http.Client{Transport: f.transport(), CheckRedirect: checkRedirect}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return Page{}, f.refuse("url_invalid", address, err.Error(), "a URL", "correct the URL")
	}
	request.Header.Set("User-Agent", "trainwright")
	request.Header.Set("Accept", "text/html, text/markdown, text/plain, application/pdf, application/json;q=0.9, */*;q=0.5")
	response, err := client.Do(request)
	if err != nil {
		return Page{}, f.failed(address, err, limit)
	}
	defer response.Body.Close()
	return f.read(address, response, limit)
}

func (f Fetcher) transport() *http.Transport {
	return &http.Transport{DialContext: f.dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 256 << 10, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true}
}

// dial resolves the name, judges the addresses, and connects to one that was judged: a name that answers otherwise a moment later
// changes nothing.
func (f Fetcher) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	if literal, err := netip.ParseAddr(host); err == nil {
		found = []netip.Addr{literal}
	} else {
		resolver := f.Resolver
		if resolver == nil {
			resolver = net.DefaultResolver
		}
		if found, err = resolver.LookupNetIP(ctx, "ip", host); err != nil {
			return nil, err
		}
	}
	var last error = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	for _, candidate := range found {
		if why, ok := admits(candidate, f.Addresses); !ok {
			return nil, &refused{host, candidate.String(), why} // one bad address is enough: a public one beside it is a trick
		}
	}
	for _, candidate := range found {
		connection, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, net.JoinHostPort(candidate.Unmap().String(), port))
		if err == nil {
			return connection, nil
		}
		last = err
	}
	return nil, last
}

func checkRedirect(next *http.Request, before []*http.Request) error {
	next.Header.Del("Referer")
	switch from := before[len(before)-1].URL; {
	case len(before) > MaxRedirects:
		return errRedirects
	case next.URL.Scheme != "http" && next.URL.Scheme != "https", from.Scheme == "https" && next.URL.Scheme == "http", next.URL.User != nil:
		return errScheme
	}
	return nil
}

func (f Fetcher) refuse(code, address, what, expected, remedy string) error {
	return finding.Refuse(finding.Finding{Code: code, Severity: finding.Error, What: fmt.Sprintf("%s: %s", shown(address), what), Where: &finding.Where{Path: shown(address)}, Expected: expected, Remedy: remedy})
}

// shown is an address without what may be secret in it.
func shown(address string) string {
	where, err := url.Parse(address)
	if err != nil {
		return "the URL"
	}
	where.User, where.Fragment = nil, ""
	if where.RawQuery != "" {
		where.RawQuery = "…"
	}
	return strings.ReplaceAll(where.String(), "%E2%80%A6", "…")
}

const saveIt = `save the page yourself and send it: {"sources": [{"kind": "file", "ref": "<path>"}]}`

func (f Fetcher) failed(address string, err error, limit time.Duration) error {
	var no *refused
	switch {
	case errors.As(err, &no):
		return f.refuse("address_refused", address, no.Error(), "a public address", "if the user wants it read, they add the range to network_addresses in policy.yaml; otherwise "+saveIt)
	case errors.Is(err, errRedirects):
		return f.refuse("redirect_refused", address, fmt.Sprintf("more than %d redirects", MaxRedirects), "the page itself", "name the address it ends at")
	case errors.Is(err, errScheme):
		return f.refuse("redirect_refused", address, errScheme.Error(), "the page itself", "name the address it ends at")
	case errors.Is(err, context.DeadlineExceeded):
		return f.refuse("fetch_timeout", address, fmt.Sprintf("no complete answer within %s", limit), "a page that answers", "call again later, or "+saveIt)
	case errors.Is(err, context.Canceled):
		return err
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // without the address, which may hold a secret
	}
	return f.refuse("fetch_failed", address, err.Error(), "a page that answers", "check the address; proxies of the environment are not used; or "+saveIt)
}

func (f Fetcher) read(address string, response *http.Response, took time.Duration) (Page, error) {
	page := Page{URL: response.Request.URL.String(), Status: response.StatusCode, Type: response.Header.Get("Content-Type"), ETag: response.Header.Get("ETag")}
	if response.StatusCode != http.StatusOK {
		return page, f.refuse("http_status", address, "the server answered "+response.Status, "200 OK", "check the address; a page behind a login can be saved and sent as a file")
	}
	most := f.Bytes
	if most <= 0 {
		most = MaxBytes
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return page, f.failed(address, err, took)
	case int64(len(body)) > most:
		return page, f.refuse("fetch_too_large", address, fmt.Sprintf("the page is larger than %d bytes", most), "a page of text", "data belongs into data.train_source: download it yourself")
	}
	sum := sha256.Sum256(body)
	page.SHA256, page.Bytes = "sha256:"+hex.EncodeToString(sum[:]), int64(len(body))
	page.Text, page.Notes, err = Text(body, page.Type, response.Request.URL.Path)
	if err != nil {
		return page, f.refuse("source_not_text", address, err.Error(), "HTML, PDF or text", saveIt)
	}
	if page.URL != address {
		page.Notes = append(page.Notes, "redirected to "+shown(page.URL))
	}
	return page, nil
}
