package resources

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// address is a URI taken apart: what it is of (a run, a job, a skill; nothing for the workspace), the decoded path below
// that, "." for the thing itself, and the range of bytes. base is the URI without a range.
type address struct {
	uri, base, scheme, of, path string
	part                        part
}

// part is a range: limit bytes from offset on, from the end where offset is negative. Without a limit it is as much as a
// read gives; given is false where the address has no range.
type part struct {
	offset, limit int64
	given         bool
}

// parse takes an address apart. It refuses what can be no file inside a folder (ErrNotFound) and a range that is none
// (ErrInvalid).
func parse(uri string) (address, error) {
	a := address{uri: uri, base: uri}
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return a, notFound(uri, addressForms)
	}
	a.scheme = scheme
	if scheme != "skill" { // whose files come whole
		var query string
		if rest, query, ok = strings.Cut(rest, "?"); ok {
			a.base = scheme + "://" + rest
			var err error
			if a.part, err = parsePart(uri, query); err != nil {
				return a, err
			}
		}
	}
	escaped := rest
	switch scheme {
	case "workspace":
		escaped = strings.TrimPrefix(rest, "/")
	case "run", "job", "skill":
		a.of, escaped, _ = strings.Cut(rest, "/")
		if a.of == "" {
			return a, notFound(uri, addressForms)
		}
	default:
		return a, notFound(uri, addressForms)
	}
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return a, notFound(uri, "its path is not percent-encoded; write % as %25 and a space as %20")
	}
	if scheme == "workspace" || scheme == "job" { // folders may end in a slash
		name = strings.TrimSuffix(name, "/")
		if name == "" {
			name = "."
		}
	}
	if !fs.ValidPath(name) || name == "." && scheme != "workspace" && scheme != "job" || strings.ContainsAny(name, "\\\x00") || path.Clean(name) != name {
		return a, notFound(uri, addressForms)
	}
	a.path = name
	return a, nil
}

const addressForms = "addresses are workspace:///<path>, run://<run_id>/<artifact>, job://<job_id>[/<file>] and skill://<name>/SKILL.md, without dots that lead up"

func parsePart(uri, query string) (part, error) {
	p := part{given: true}
	values, err := url.ParseQuery(query)
	if err != nil {
		return p, invalid(uri, "what follows the ? can't be read")
	}
	for key, given := range values {
		n, err := strconv.ParseInt(given[0], 10, 64)
		switch {
		case key != "offset" && key != "limit":
			return p, invalid(uri, fmt.Sprintf("there is no %q", key))
		case err != nil || len(given) > 1 || key == "limit" && n <= 0:
			return p, invalid(uri, fmt.Sprintf("%s is %q", key, strings.Join(given, ", ")))
		case key == "offset":
			p.offset = n
		default:
			p.limit = n
		}
	}
	return p, nil
}

func invalid(uri, why string) error {
	return fmt.Errorf("%w: %s in %q; a range is ?offset=<bytes>&limit=<bytes>, a negative offset counts from the end", ErrInvalid, why, uri)
}

// escaped is a path as an address writes it.
func escaped(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
