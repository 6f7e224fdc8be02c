package source

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func code(t *testing.T, err error) string {
	t.Helper()
	var refused *finding.Refused
	if !errors.As(err, &refused) {
		t.Fatalf("%v is no refusal", err)
	}
	f := refused.Findings[0]
	if f.Remedy == "" || f.Expected == "" || f.Where == nil {
		t.Errorf("the finding does not help: %+v", f)
	}
	return f.Code
}

func TestOnlyPublicAddressesAreReached(t *testing.T) {
	for text, public := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "127.0.0.1": false, "127.9.9.9": false, "10.1.2.3": false, "172.16.0.1": false, "172.32.0.1": true, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.128.0.1": true, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false,
		"::1": false, "::": false, "fe80::1": false, "fe80::1%eth0": false, "fd00:ec2::254": false, "fc00::1": false, "ff02::1": false, "2001:db8::1": false,
		"::ffff:127.0.0.1": false, "::ffff:8.8.8.8": true, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b::808:808": true, "2002:7f00:1::": false, "2002:808:808::": true,
		"2001::1": false, "64:ff9b:1::1": false,
	} {
		if why, ok := admits(netip.MustParseAddr(text), nil); ok != public {
			t.Errorf("%s: reached %t (%s), want %t", text, ok, why, public)
		}
	}
	if _, ok := admits(netip.MustParseAddr("10.1.2.3"), []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}); !ok {
		t.Error("an address that the policy names is refused")
	}
}

// names answers every name with one address, and counts.
type names struct {
	address string
	asked   atomic.Int32
}

func (n *names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	n.asked.Add(1)
	return []netip.Addr{netip.MustParseAddr("93.184.215.14"), netip.MustParseAddr(n.address)}, nil
}

func TestAPrivateAddressIsNotReached(t *testing.T) {
	var reached atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	for _, address := range []string{server.URL, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://2130706433:" + port, "http://0x7f.1:" + port} {
		_, err := Fetcher{Time: 2 * time.Second}.Fetch(context.Background(), address)
		if got := code(t, err); got != "address_refused" && got != "fetch_failed" {
			t.Errorf("%s: %s", address, got)
		}
	}
	resolver := &names{address: "127.0.0.1"}
	_, err := Fetcher{Resolver: resolver}.Fetch(context.Background(), "http://innocent.example:"+port+"/")
	if got := code(t, err); got != "address_refused" || resolver.asked.Load() != 1 {
		t.Errorf("a name with a public and a private address: %s after %d look-ups", got, resolver.asked.Load())
	}
	if reached.Load() != 0 {
		t.Errorf("the server was reached %d times", reached.Load())
	}
}

func TestRedirectsAreJudgedEachTime(t *testing.T) {
	var secret atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { secret.Add(1) }))
	defer inner.Close()
	innerPort := inner.URL[strings.LastIndex(inner.URL, ":"):]
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/private":
			http.Redirect(w, r, "http://127.0.0.2"+innerPort, http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/user":
			http.Redirect(w, r, "http://me:pass@127.0.0.1/", http.StatusFound)
		default:
			fmt.Fprint(w, "<h1>Here</h1><script>no()</script><p>epochs: 40</p>")
		}
	}))
	defer outer.Close()
	host, _, _ := net.SplitHostPort(strings.TrimPrefix(outer.URL, "http://"))
	f := Fetcher{Addresses: []netip.Prefix{netip.MustParsePrefix(host + "/32")}}
	for path, want := range map[string]string{"/private": "address_refused", "/loop": "redirect_refused", "/file": "redirect_refused", "/user": "redirect_refused"} {
		_, err := f.Fetch(context.Background(), outer.URL+path)
		if got := code(t, err); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if secret.Load() != 0 {
		t.Error("a redirect reached an address that nobody named")
	}
	page, err := f.Fetch(context.Background(), outer.URL+"/page")
	if err != nil || page.Text != "# Here\n\nepochs: 40" || page.Status != 200 || !strings.HasPrefix(page.SHA256, "sha256:") || page.Bytes != 51 {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestHostileAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			zeros := make([]byte, 1<<20)
			for range 1024 {
				if _, err := packed.Write(zeros); err != nil {
					return
				}
			}
			_ = packed.Close()
		case "/slow":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/binary":
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write([]byte{0, 1, 2, 3, 0xff})
		case "/none":
			w.WriteHeader(http.StatusNotFound)
		case "/latin":
			w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
			_, _ = w.Write([]byte("<p>caf\xe9</p>"))
		}
	}))
	defer server.Close()
	f := Fetcher{Addresses: loopback, Time: 2 * time.Second, Bytes: 1 << 20}
	for path, want := range map[string]string{"/endless": "fetch_too_large", "/bomb": "fetch_too_large", "/slow": "fetch_timeout", "/binary": "source_not_text", "/none": "http_status"} {
		began := time.Now()
		_, err := f.Fetch(context.Background(), server.URL+path)
		if got := code(t, err); got != want || time.Since(began) > 5*time.Second {
			t.Errorf("%s: %s after %s, want %s", path, got, time.Since(began), want)
		}
	}
	if page, err := f.Fetch(context.Background(), server.URL+"/latin"); err != nil || page.Text != "café" {
		t.Errorf("%q, %v", page.Text, err)
	}
	for _, address := range []string{"ftp://example.org/x", "file:///etc/passwd", "http://", "not a url", "http://me:secret@example.org/"} {
		_, err := f.Fetch(context.Background(), address)
		if got := code(t, err); got != "url_invalid" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %s %v", address, got, err)
		}
	}
}
