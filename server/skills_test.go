package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/resources"
)

func skillText(name string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("---\nname: " + name + "\ndescription: A skill of the test.\nmetadata:\n  type: resource\n---\n# " + name + "\n")}
}

// demoSkills is a library of two skills.
func demoSkills() (*skill.Library, error) {
	library, _ := skill.NewLibrary(skill.Root{Label: "test", Dir: ".", FS: fstest.MapFS{
		"demo/SKILL.md":                skillText("demo"),
		"demo/references/a.md":         {Data: []byte("a")},
		"demo/references/deep/b.json":  {Data: []byte("{}")},
		"demo/references/with dot.png": {Data: []byte{0x89}},
		"other/SKILL.md":               skillText("other"),
	}})
	return library, nil
}

// ask sends one request to a server without a transport and gives the result, or the code of the error.
func ask(t *testing.T, s *Server, method string, params any, into any) (code int) {
	t.Helper()
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(s.HandleMessage(t.Context(), message))
	if err != nil {
		t.Fatal(err)
	}
	var answer reply
	if err := json.Unmarshal(encoded, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error != nil {
		return answer.Error.Code
	}
	if err := json.Unmarshal(answer.Result, into); err != nil {
		t.Fatalf("%v in %s", err, answer.Result)
	}
	return 0
}

type listedSkills struct {
	Skills []struct {
		URI       string
		Resources json.RawMessage
	}
	NextCursor string
}

// What skills/list says of a file is what resources/read gives: a client throws away what differs.
func TestDigestsAreThoseOfWhatIsRead(t *testing.T) {
	workspace := t.TempDir()
	own := filepath.Join(workspace, ".claude/skills/own")
	for name, data := range map[string][]byte{"SKILL.md": skillText("own").Data, "login.md": []byte("\ufeffpassword = hunter2hunter2 & <b>\r\n\u2028 end"), "latin.txt": []byte("caf\xe9"), "plot.png": {0x89, 0, 1}, "nul.txt": []byte("a\x00b"), "empty.txt": nil,
		"long.md": bytes.Repeat([]byte("api_key: sk-abcdefghijklmnopqrstuvwxyz123456\n"), 50_000), "cut.md": []byte("half a character \xc3")} {
		putFile(t, filepath.Join(own, name), data)
	}
	roots, err := rundir.NewRoots(workspace, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	library := resources.Skills(resources.SkillPlaces{Workspace: roots.Workspace(), Now: time.Now})
	source := &resources.Source{Roots: roots, Library: library, Canonical: func(string) []string { return nil }}
	s := New(Options{Version: "test", Resources: source, Skills: func() (*skill.Library, error) { return library, nil }, Log: zerolog.Nop()})
	var listed listedSkills
	if code := ask(t, s, "skills/list", map[string]any{}, &listed); code != 0 || len(listed.Skills) == 0 {
		t.Fatalf("%d, %+v", code, listed)
	}
	checked := 0
	for _, one := range listed.Skills {
		var files []skillFile
		if err := json.Unmarshal(one.Resources, &files); err != nil || len(files) < 2 {
			t.Fatalf("%s: %v, %v", one.URI, files, err)
		}
		for _, f := range files {
			var read struct{ Contents []struct{ Text, Blob string } }
			if code := ask(t, s, "resources/read", map[string]any{"uri": f.URI}, &read); code != 0 || len(read.Contents) != 1 {
				t.Errorf("%s: %d", f.URI, code)
				continue
			}
			data := []byte(read.Contents[0].Text)
			if blob := read.Contents[0].Blob; blob != "" {
				if data, err = base64.StdEncoding.DecodeString(blob); err != nil || utf8.Valid(data) {
					t.Errorf("%s: a blob of text: %v", f.URI, err)
				}
			}
			sum := sha256.Sum256(data)
			if got := "sha256:" + hex.EncodeToString(sum[:]); got != f.Digest || int64(len(data)) != f.Size {
				t.Errorf("%s: read %s of %d bytes, listed %s of %d", f.URI, got, len(data), f.Digest, f.Size)
			}
			checked++
		}
	}
	if checked < 8+2 {
		t.Errorf("%d files were compared", checked)
	}
}

// putFile writes a file and makes its folders.
func putFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A skill that is added or edited while the server runs is listed and read, and clients hear of it, on both transports.
func TestSkillsThatChange(t *testing.T) {
	workspace := t.TempDir()
	roots, err := rundir.NewRoots(workspace, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var clock atomic.Int64 // every look is a second later
	now := func() time.Time { return time.Unix(1_790_000_000+clock.Add(1), 0) }
	library := resources.Skills(resources.SkillPlaces{Workspace: roots.Workspace(), Now: now})
	source := &resources.Source{Roots: roots, Library: library, Canonical: func(string) []string { return nil }}
	log := &safeBuffer{}
	s := New(Options{Version: "test", Resources: source, Skills: func() (*skill.Library, error) { return library, nil }, Log: zerolog.New(log), Poll: time.Millisecond})

	p := connectTo(t, s, log)
	p.initialize()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
	p.next()
	w := openOn(t, HTTPOptions{}, s, log)
	body, header := modern("sub", "subscriptions/listen", "", map[string]any{"notifications": map[string]any{"resourcesListChanged": true, "resourceSubscriptions": []string{"skill://onescience-trainer/SKILL.md"}}})
	stream, leave := w.stream(w.request(t.Context(), body, header...))
	defer leave()
	stream.next()
	told := func(what string) {
		t.Helper()
		for _, next := range []func() reply{p.next, stream.next} {
			r := next()
			for r.Method == "notifications/resources/updated" {
				r = next()
			}
			if r.Method != "notifications/resources/list_changed" {
				t.Errorf("%s: %+v", what, r)
			}
		}
	}
	digests := func(name string) (all string) {
		t.Helper()
		var got struct {
			Skill struct{ Resources []skillFile }
		}
		if code := ask(t, s, "skills/get", map[string]any{"uri": "skill://" + name + "/SKILL.md"}, &got); code != 0 {
			t.Fatalf("%s: %d", name, code)
		}
		for _, f := range got.Skill.Resources {
			all += f.Digest
		}
		return all
	}
	putFile(t, filepath.Join(workspace, ".agents/skills/fresh/SKILL.md"), skillText("fresh").Data)
	told("added")
	before := digests("fresh")
	putFile(t, filepath.Join(workspace, ".agents/skills/fresh/SKILL.md"), append(skillText("fresh").Data, "more\n"...))
	told("edited")
	if after := digests("fresh"); after == before {
		t.Error("the edited skill has the digest of the first one")
	}
	ours := digests("onescience-trainer")
	putFile(t, filepath.Join(workspace, ".claude/skills/onescience-trainer/SKILL.md"), skillText("onescience-trainer").Data)
	told("replaced")
	if digests("onescience-trainer") == ours {
		t.Error("the workspace's own skill does not win")
	}
	if err := os.RemoveAll(filepath.Join(workspace, ".agents/skills/fresh")); err != nil {
		t.Fatal(err)
	}
	told("removed")
	if code := ask(t, s, "skills/get", map[string]any{"uri": "skill://fresh/SKILL.md"}, &struct{}{}); code != codeInvalidParams {
		t.Errorf("a skill that is gone: %d", code)
	}
}

// A skill beyond the limits of the extension says that it is, instead of a list that is not whole.
func TestASkillBeyondTheLimitsIsDynamic(t *testing.T) {
	files := fstest.MapFS{"big/SKILL.md": skillText("big")}
	for i := range skill.MaxFiles {
		files[fmt.Sprintf("big/f%04d.md", i)] = &fstest.MapFile{Data: []byte("x")}
	}
	library, _ := skill.NewLibrary(skill.Root{Label: "test", FS: files, Dir: "."})
	s := New(Options{Version: "test", Resources: shelf{}, Skills: func() (*skill.Library, error) { return library, nil }, Log: zerolog.Nop()})
	var got struct {
		Skill struct{ Resources json.RawMessage }
	}
	if code := ask(t, s, "skills/get", map[string]any{"uri": "skill://big/SKILL.md"}, &got); code != 0 || string(got.Skill.Resources) != `"dynamic"` {
		t.Errorf("%d, %s", code, got.Skill.Resources)
	}
	files["big/.hidden"], files["big/last/z.md"] = &fstest.MapFile{}, &fstest.MapFile{}
	seen := 0
	for cursor := ""; ; {
		var page struct {
			Resources  []struct{ Name string }
			NextCursor string
		}
		if code := ask(t, s, "resources/directory/read", map[string]any{"uri": "skill://big", "cursor": cursor}, &page); code != 0 || len(page.Resources) > skillsPage {
			t.Fatalf("%d, %d", code, len(page.Resources))
		}
		seen += len(page.Resources)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if want := skill.MaxFiles + 2; seen != want {
		t.Errorf("the pages of the folder have %d children, want %d", seen, want)
	}
	if code := ask(t, s, "resources/directory/read", map[string]any{"uri": "skill://big/none"}, &struct{}{}); code != codeInvalidParams {
		t.Errorf("got %d", code)
	}
}

func TestSkillPagesMeetWithoutGap(t *testing.T) {
	files := fstest.MapFS{}
	const n = 2*skillsPage + 5
	for i := range n {
		name := fmt.Sprintf("s%04d", i)
		files[name+"/SKILL.md"] = skillText(name)
	}
	library, _ := skill.NewLibrary(skill.Root{Label: "test", FS: files, Dir: "."})
	s := New(Options{Version: "test", Resources: shelf{}, Skills: func() (*skill.Library, error) { return library, nil }, Log: zerolog.Nop()})
	seen := map[string]bool{}
	for cursor := ""; ; {
		var page listedSkills
		if code := ask(t, s, "skills/list", map[string]any{"cursor": cursor}, &page); code != 0 || len(page.Skills) > skillsPage {
			t.Fatalf("%d, %d", code, len(page.Skills))
		}
		for _, one := range page.Skills {
			if seen[one.URI] {
				t.Errorf("%s comes twice", one.URI)
			}
			seen[one.URI] = true
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != n {
		t.Errorf("%d skills, want %d", len(seen), n)
	}
}

// Addresses that name nothing, and those that try to lead out, have the one code that the extension says.
func TestUnknownSkillsAreInvalidParams(t *testing.T) {
	s, _ := newServer()
	for method, addresses := range map[string][]string{
		"skills/get":               {"", "skill://", "skill://demo", "skill://none/SKILL.md", "skill://demo/references/a.md", "skill://demo/../demo/SKILL.md", "run://demo/SKILL.md", "skill://demo/SKILL.md/", "skill://demo/%zz"},
		"resources/directory/read": {"", "skill://", "skill://none", "skill://demo/", "skill://demo/SKILL.md", "skill://demo/references/", "skill://demo/..", "skill://demo/references/%2e%2e", "skill://demo/references/../../other", "skill://demo//references", "run://r-1/jobs"},
	} {
		for _, uri := range addresses {
			if code := ask(t, s, method, map[string]any{"uri": uri}, &struct{}{}); code != codeInvalidParams {
				t.Errorf("%s %q: %d", method, uri, code)
			}
		}
	}
	for _, params := range []any{map[string]any{"cursor": "?"}, map[string]any{"cursor": 7}, map[string]any{"cursor": []int{}}} {
		if code := ask(t, s, "skills/list", params, &struct{}{}); code != codeInvalidParams {
			t.Errorf("%v: %d", params, code)
		}
	}
}

// Without a library the extension is neither offered nor answered; a library that can't be opened is an incident.
func TestWithoutSkillsTheExtensionIsNotOffered(t *testing.T) {
	s := New(Options{Version: "test", Resources: shelf{}, Log: zerolog.Nop()})
	if code := ask(t, s, "skills/list", map[string]any{}, &struct{}{}); code != codeMethodNotFound {
		t.Errorf("got %d", code)
	}
	log := &safeBuffer{}
	s = New(Options{Version: "test", Resources: shelf{}, Skills: func() (*skill.Library, error) { return nil, context.DeadlineExceeded }, Log: zerolog.New(log)})
	if code := ask(t, s, "skills/list", map[string]any{}, &struct{}{}); code != codeInternal {
		t.Errorf("got %d", code)
	}
	if code := ask(t, s, "skills/lost", map[string]any{}, &struct{}{}); code != codeMethodNotFound {
		t.Errorf("got %d", code)
	}
}
