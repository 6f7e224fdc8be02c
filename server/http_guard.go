package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// minToken is how many characters a token must have so that it can't be guessed.
const minToken = 16

// refused is an answer of the layers before the protocol.
type refused struct {
	status int
	code   int           // of the JSON-RPC error; that of an invalid request by default
	id     []byte        // of the message, where it could be read
	text   string        // what happened, and what to do
	retry  time.Duration // when to try again, where that helps
	realm  string        // of WWW-Authenticate, where a token is asked for
}

// ListenHTTP opens the address for an HTTP server: host:port, where port 0 takes a free one. One that other machines
// reach is refused without a token (http_public_without_token), and so is an address that is none
// (http_address_invalid) and a token that could be guessed (http_token_weak).
func ListenHTTP(address, token string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || number > 65535 {
		return nil, finding.Refuse(finding.Finding{Code: "http_address_invalid", Severity: finding.Error, What: fmt.Sprintf("%q is no address to listen on", address),
			Where: &finding.Where{Field: "--http"}, Expected: "host:port, such as 127.0.0.1:8765; port 0 takes a free one", Remedy: "serve --http 127.0.0.1:0"})
	}
	if token != "" && len(token) < minToken {
		return nil, finding.Refuse(finding.Finding{Code: "http_token_weak", Severity: finding.Error, What: fmt.Sprintf("the token has %d characters", len(token)),
			Where: &finding.Where{Field: "--token-file"}, Expected: fmt.Sprintf("at least %d", minToken), Remedy: "make one with: openssl rand -hex 32"})
	}
	if token == "" && !isLoopback(host) {
		return nil, publicWithoutToken(address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, finding.Refuse(finding.Finding{Code: "http_address_unusable", Severity: finding.Error, What: err.Error(),
			Where: &finding.Where{Field: "--http"}, Expected: "an address of this machine that is free", Remedy: "take another port; port 0 takes a free one"})
	}
	if token == "" && !isLoopback(listener.Addr().String()) { // localhost may be anything in a hosts file
		_ = listener.Close() // nothing was accepted on it
		return nil, publicWithoutToken(listener.Addr().String())
	}
	return listener, nil
}

func publicWithoutToken(address string) error {
	return finding.Refuse(finding.Finding{Code: "http_public_without_token", Severity: finding.Error, What: fmt.Sprintf("%s can be reached from other machines, and there is no token", address),
		Where: &finding.Where{Field: "--http"}, Expected: "an address of the loopback, or a token", Remedy: "serve --http 127.0.0.1:0, or give --token-file FILE (or TRAINWRIGHT_HTTP_TOKEN)"})
}

// admit lets a request in by the names it was sent to and from. A web page may be made to send to an address of this
// machine under a name of its own (DNS rebinding), or to send from itself; neither is a client.
func (h *HTTP) admit(r *http.Request) *refused {
	if !h.allowedHost(r.Host) {
		return &refused{status: http.StatusForbidden, text: fmt.Sprintf("the host %q is not served; allow it with --allow-host", r.Host)}
	}
	for _, origin := range r.Header.Values("Origin") {
		if !h.allowedOrigin(origin) {
			return &refused{status: http.StatusForbidden, text: fmt.Sprintf("requests from %q are not served; allow it with --allow-origin", origin)}
		}
	}
	return nil
}

// allowedHost knows the loopback and the names that were given. A server for other machines is also reached by bare
// addresses, which no name server can bend.
func (h *HTTP) allowedHost(hostport string) bool {
	host := hostOf(hostport)
	if isLoopback(host) || slices.ContainsFunc(h.options.Hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, host) || strings.EqualFold(allowed, hostport)
	}) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return h.public && err == nil
}

func (h *HTTP) allowedOrigin(origin string) bool {
	if slices.ContainsFunc(h.options.Origins, func(allowed string) bool { return strings.EqualFold(allowed, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && isLoopback(u.Host)
}

// authorize wants the token, if there is one. Both sides are hashed first, so that the time tells neither how much of a
// token was right nor how long it is.
func (h *HTTP) authorize(r *http.Request) *refused {
	if h.options.Token == "" {
		return nil
	}
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || sent == "" {
		return &refused{status: http.StatusUnauthorized, realm: `Bearer realm="trainwright"`, text: "a token is needed; send it as Authorization: Bearer <token>"}
	}
	want, got := sha256.Sum256([]byte(h.options.Token)), sha256.Sum256([]byte(strings.TrimSpace(sent)))
	if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		return &refused{status: http.StatusUnauthorized, realm: `Bearer realm="trainwright", error="invalid_token"`, text: "the token is not the one this server was started with"}
	}
	return nil
}

// hostOf takes the port and the brackets of an IPv6 address off.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// isLoopback says whether a host, with or without a port, names this machine only.
func isLoopback(hostport string) bool {
	host := hostOf(hostport)
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// withBody is the request with a body that was read.
func withBody(r *http.Request, body []byte) *http.Request {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return r
}
