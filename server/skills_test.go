package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

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
	roots, err := rundir.NewRoots(t.TempDir(), nil, nil)
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
	for _, one := range listed.Skills {
		var files []skillFile
		if err := json.Unmarshal(one.Resources, &files); err != nil || len(files) < 2 {
			t.Fatalf("%s: %v, %v", one.URI, files, err)
		}
		for _, f := range files {
			var read struct{ Contents []struct{ Text string } }
			if code := ask(t, s, "resources/read", map[string]any{"uri": f.URI}, &read); code != 0 || len(read.Contents) != 1 {
				t.Errorf("%s: %d", f.URI, code)
				continue
			}
			sum := sha256.Sum256([]byte(read.Contents[0].Text))
			if got := "sha256:" + hex.EncodeToString(sum[:]); got != f.Digest || int64(len(read.Contents[0].Text)) != f.Size {
				t.Errorf("%s: read %s of %d bytes, listed %s of %d", f.URI, got, len(read.Contents[0].Text), f.Digest, f.Size)
			}
		}
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
