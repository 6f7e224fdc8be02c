package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/resources"
)

// skillsExtension is the identifier of the MCP skills extension (SEP-2640); its page is specification/stable/skills.mdx
// of modelcontextprotocol/ext-skills.
const skillsExtension = "io.modelcontextprotocol/skills"

const (
	// skillsPage is how many skills a page of skills/list has, and how many children one of resources/directory/read.
	skillsPage = 100
	// skillsFresh is for how long a client may take a listing for current, in milliseconds. A workspace's own skills
	// may be edited at any time, and they are nobody else's: the scope is private.
	skillsFresh = 60_000
	// mimeDirectory marks a directory resource.
	mimeDirectory = "inode/directory"
	manifestFile  = "SKILL.md"
)

// skillEntry describes one skill, the same in skills/list and skills/get. Resources is every file of it, or the word
// "dynamic" for one that has more than may be listed.
type skillEntry struct {
	URI         string         `json:"uri"`
	Frontmatter map[string]any `json:"frontmatter"`
	Resources   any            `json:"resources"`
}

// skillFile is one file of a skill: the sha256 of its bytes, written "sha256:<64 hex>", and their number.
type skillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// cacheable is what the protocol wants of a result that may be kept.
type cacheable struct {
	TTLMs int64          `json:"ttlMs"`
	Scope mcp.CacheScope `json:"cacheScope"`
}

var fresh = cacheable{TTLMs: skillsFresh, Scope: mcp.CacheScopePrivate}

type skillsListed struct {
	ResultType string       `json:"resultType"`
	Skills     []skillEntry `json:"skills"`
	NextCursor string       `json:"nextCursor,omitempty"`
	cacheable
}

type skillGot struct {
	ResultType string     `json:"resultType"`
	Skill      skillEntry `json:"skill"`
	cacheable
}

type directoryRead struct {
	ResultType string         `json:"resultType"`
	Resources  []mcp.Resource `json:"resources"`
	NextCursor string         `json:"nextCursor,omitempty"`
}

// complete is the resultType of an answer that asks for nothing more.
const complete = "complete"

// extension answers the methods of the skills extension; failure stays what it is for every other one.
func (s *Server) extension(ctx context.Context, message json.RawMessage, failure mcp.JSONRPCError) mcp.JSONRPCMessage {
	var request struct {
		Method string `json:"method"`
		Params struct {
			URI    string `json:"uri"`
			Cursor string `json:"cursor"`
		} `json:"params"`
	}
	malformed := json.Unmarshal(message, &request)
	answer := map[string]func(*skill.Library, string, string) (any, error){"skills/list": listSkills, "skills/get": getSkill, "resources/directory/read": readDirectory}[request.Method]
	if s.skills == nil || answer == nil {
		return failure
	}
	fail := func(code int, text string) mcp.JSONRPCMessage {
		failure.Error = mcp.JSONRPCErrorDetails{Code: code, Message: text}
		return failure
	}
	if malformed != nil {
		return fail(codeInvalidParams, fmt.Sprintf("the params of %s can't be read: %v; uri and cursor are strings", request.Method, malformed))
	}
	library, err := s.skills()
	if err != nil {
		incident := s.callID(ctx)
		s.log.Error().Str("incident", incident).Str("method", request.Method).Str("error", scrub(err.Error())).Msg("open the skills")
		return fail(codeInternal, incidentText(incident))
	}
	result, err := answer(library, request.Params.URI, request.Params.Cursor)
	if err != nil { // an address or a cursor that leads nowhere
		return fail(codeInvalidParams, err.Error())
	}
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: failure.ID, Result: result}
}

// listSkills answers skills/list.
func listSkills(library *skill.Library, _, cursor string) (any, error) {
	page, next, err := pageAfter(library.List(""), cursor, func(s *skill.Skill) string { return s.Name })
	if err != nil {
		return nil, err
	}
	result := skillsListed{ResultType: complete, Skills: make([]skillEntry, 0, len(page)), NextCursor: next, cacheable: fresh}
	for _, s := range page {
		result.Skills = append(result.Skills, entryOf(s))
	}
	return result, nil
}

// getSkill answers skills/get, whose address is that of a SKILL.md.
func getSkill(library *skill.Library, uri, _ string) (any, error) {
	name, file, ok := splitSkill(uri)
	if !ok || file != manifestFile {
		return nil, fmt.Errorf("no skill is served at %q; its address is skill://<name>/SKILL.md, skills/list has them all", uri)
	}
	s, err := library.Get(name)
	if err != nil {
		return nil, fmt.Errorf("no skill is served at %q; %s", uri, knownSkills(library, name))
	}
	return skillGot{ResultType: complete, Skill: entryOf(s), cacheable: fresh}, nil
}

// readDirectory answers resources/directory/read: the direct children of a skill's folder or of one below it.
func readDirectory(library *skill.Library, uri, cursor string) (any, error) {
	name, dir, ok := splitSkill(uri)
	if !ok {
		return nil, fmt.Errorf("%q is no directory; addresses are skill://<name> and skill://<name>/<folder>, without a slash at the end", uri)
	}
	s, err := library.Get(name)
	if err != nil {
		return nil, fmt.Errorf("no directory at %q; %s", uri, knownSkills(library, name))
	}
	children := childrenOf(s, dir)
	if children == nil {
		return nil, fmt.Errorf("%q is no directory of skill %s; skill://%s has its files and folders", uri, name, name)
	}
	page, next, err := pageAfter(children, cursor, func(r mcp.Resource) string { return r.URI })
	if err != nil {
		return nil, err
	}
	return directoryRead{ResultType: complete, Resources: page, NextCursor: next}, nil
}

func entryOf(s *skill.Skill) skillEntry {
	entry := skillEntry{URI: s.URI(manifestFile), Frontmatter: s.Frontmatter}
	if s.Dynamic {
		entry.Resources = "dynamic"
		return entry
	}
	files := make([]skillFile, 0, len(s.Files))
	for _, f := range s.Files {
		files = append(files, skillFile{URI: f.URI, Digest: f.SHA256, Size: f.Size})
	}
	entry.Resources = files
	return entry
}

// childrenOf lists a folder of a skill by address; nil when there is no such folder. What a skill lists is what may be
// read of it; one with more files than may be listed is looked up on disk.
func childrenOf(s *skill.Skill, dir string) []mcp.Resource {
	files := s.Files
	if s.Dynamic {
		files = filesIn(s, dir)
	}
	var children []mcp.Resource
	below := dir + "/"
	if dir == "." {
		below = ""
	}
	for _, f := range files {
		rest, inside := strings.CutPrefix(f.Path, below)
		if !inside {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		folder := mcp.NewResource(s.URI(path.Join(dir, name)), name, mcp.WithMIMEType(mimeDirectory))
		switch {
		case !deeper:
			children = append(children, wireFile(s, f, name))
		case !slices.ContainsFunc(children, func(r mcp.Resource) bool { return r.URI == folder.URI }):
			children = append(children, folder)
		}
	}
	slices.SortFunc(children, func(a, b mcp.Resource) int { return strings.Compare(a.URI, b.URI) })
	return children
}

func wireFile(s *skill.Skill, f skill.File, name string) mcp.Resource {
	r := mcp.NewResource(s.URI(f.Path), name, mcp.WithMIMEType(resources.MIMEType(f.Path, nil)))
	r.Size = &f.Size
	if f.Path == manifestFile {
		r.Name, r.Title, r.Description = s.Name, s.Name, s.Description
	}
	return r
}

// filesIn gives the direct children of a folder on disk as files; a folder among them stands for some file in it. What
// is hidden or compiled is no part of a skill.
func filesIn(s *skill.Skill, dir string) []skill.File {
	entries, err := fs.ReadDir(s.FS, dir)
	if err != nil {
		return nil // no such folder, or none that may be read
	}
	var files []skill.File
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		info, err := fs.Stat(s.FS, name)
		switch {
		case err != nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "__pycache__":
		case info.IsDir():
			files = append(files, skill.File{Path: name + "/"})
		case info.Mode().IsRegular():
			files = append(files, skill.File{Path: name, Size: info.Size()})
		}
	}
	return files
}

// splitSkill takes skill://<name>[/<path>] apart; the path is "." for the skill's own folder.
func splitSkill(uri string) (name, file string, ok bool) {
	rest, ok := strings.CutPrefix(uri, "skill://")
	if !ok {
		return "", "", false
	}
	name, escaped, below := strings.Cut(rest, "/")
	if !below {
		return name, ".", name != ""
	}
	file, err := url.PathUnescape(escaped)
	return name, file, err == nil && name != "" && file != "." && fs.ValidPath(file)
}

func knownSkills(library *skill.Library, name string) string {
	var names []string
	for _, s := range library.List("") {
		names = append(names, s.Name)
	}
	if near := finding.Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean skill://%s/SKILL.md? skills/list has them all", near)
	}
	return "skills/list has them all"
}

func unknownCursor(cursor string) string {
	return fmt.Sprintf("the cursor %q is none of ours; leave it out to start from the first page", cursor)
}

// pageAfter gives the page that follows a cursor. The cursor is the key of the page's last item, so that a list which
// changed meanwhile has neither gap nor repetition; items are in the order of their keys.
func pageAfter[T any](all []T, cursor string, key func(T) string) (page []T, next string, err error) {
	if cursor != "" {
		last, err := base64.StdEncoding.DecodeString(cursor)
		if err != nil {
			return nil, "", errors.New(unknownCursor(cursor))
		}
		from := slices.IndexFunc(all, func(item T) bool { return key(item) > string(last) })
		if from < 0 {
			from = len(all)
		}
		all = all[from:]
	}
	if len(all) > skillsPage {
		all = all[:skillsPage]
		next = base64.StdEncoding.EncodeToString([]byte(key(all[skillsPage-1])))
	}
	return all, next, nil
}
