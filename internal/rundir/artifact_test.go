package rundir

import (
	"os"
	"runtime"
	"testing"

	"github.com/trainwright/trainwright/internal/finding"
)

// TestWriteArtifact plays what happens to one artifact over several calls. Each step either changes a file by hand or
// renders; then the artifact and the file beside it are looked at.
func TestWriteArtifact(t *testing.T) {
	type step struct {
		edit   map[string]string // by hand; "" deletes
		render string
		wrote  bool
		code   string
		plan   string // content of plan.md afterwards
		beside string // content of plan.new.md afterwards
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{"ours is overwritten", []step{
			{render: "v1", wrote: true, plan: "v1"},
			{render: "v1", plan: "v1"},
			{render: "v2", wrote: true, plan: "v2"},
		}},
		{"an edit is kept and the new rendering offered", []step{
			{render: "v1", wrote: true, plan: "v1"},
			{edit: map[string]string{"plan.md": "mine"}, render: "v1", code: "artifact_edited_by_hand", plan: "mine", beside: "v1"},
			{render: "v2", code: "artifact_edited_by_hand", plan: "mine", beside: "v2"},
		}},
		{"deleting the artifact takes the offer", []step{
			{render: "v1", wrote: true, plan: "v1"},
			{edit: map[string]string{"plan.md": "mine"}, render: "v2", code: "artifact_edited_by_hand", plan: "mine", beside: "v2"},
			{edit: map[string]string{"plan.md": ""}, render: "v2", wrote: true, plan: "v2"},
		}},
		{"deleting the offer keeps the edit, until there is something newer", []step{
			{render: "v1", wrote: true, plan: "v1"},
			{edit: map[string]string{"plan.md": "mine"}, render: "v2", code: "artifact_edited_by_hand", plan: "mine", beside: "v2"},
			{edit: map[string]string{"plan.new.md": ""}, render: "v2", code: "artifact_edited_by_hand", plan: "mine"},
			{render: "v3", code: "artifact_edited_by_hand", plan: "mine", beside: "v3"},
		}},
		{"copying the offer over ends the matter", []step{
			{render: "v1", wrote: true, plan: "v1"},
			{edit: map[string]string{"plan.md": "mine"}, render: "v2", code: "artifact_edited_by_hand", plan: "mine", beside: "v2"},
			{edit: map[string]string{"plan.md": "v2"}, render: "v2", plan: "v2"},
			{render: "v3", wrote: true, plan: "v3"},
		}},
		{"an offer that was edited is not overwritten", []step{
			{render: "v1", wrote: true, plan: "v1"},
			{edit: map[string]string{"plan.md": "mine"}, render: "v2", code: "artifact_edited_by_hand", plan: "mine", beside: "v2"},
			{edit: map[string]string{"plan.new.md": "mine too"}, render: "v3", code: "artifact_planted", plan: "mine", beside: "mine too"},
		}},
		{"a file that was there before is planted", []step{
			{edit: map[string]string{"plan.md": "planted"}, render: "v1", code: "artifact_planted", plan: "planted"},
			{edit: map[string]string{"plan.md": ""}, render: "v1", wrote: true, plan: "v1"},
		}},
		{"a file that was there before and says the same is taken over", []step{
			{edit: map[string]string{"plan.md": "v1"}, render: "v1", plan: "v1"},
			{render: "v2", wrote: true, plan: "v2"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := Dir{t.TempDir()}
			for i, s := range test.steps {
				for name, text := range s.edit {
					if text == "" {
						remove(t, d.Abs(name))
					} else {
						put(t, d.Abs(name), text)
					}
				}
				wrote, f, err := d.WriteArtifact("plan.md", []byte(s.render))
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				code := ""
				if f != nil {
					code = f.Code
				}
				if wrote != s.wrote || code != s.code {
					t.Errorf("step %d: wrote %v with %q, want %v with %q", i, wrote, code, s.wrote, s.code)
				}
				if plan, beside := content(t, d.Abs("plan.md")), content(t, d.Abs("plan.new.md")); plan != s.plan || beside != s.beside {
					t.Errorf("step %d: plan.md %q and plan.new.md %q, want %q and %q", i, plan, beside, s.plan, s.beside)
				}
			}
		})
	}
}

func TestEditedJSONIsAnError(t *testing.T) {
	d := Dir{t.TempDir()}
	if _, f, err := d.WriteArtifact("split/plan.json", []byte("1")); f != nil || err != nil {
		t.Fatal(f, err)
	}
	put(t, d.Abs("split/plan.json"), "2")
	_, f, err := d.WriteArtifact("split/plan.json", []byte("3"))
	if err != nil || f == nil || f.Severity != finding.Error || content(t, d.Abs("split/plan.new.json")) != "3" {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestCrashBetweenNoteAndArtifact: rendered.json says v2 already, the file still holds v1. It is ours, not a hand's work.
func TestCrashBetweenNoteAndArtifact(t *testing.T) {
	d := Dir{t.TempDir()}
	for _, text := range []string{"v1", "v2"} {
		if _, _, err := d.WriteArtifact("plan.md", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, d.Abs("plan.md"), "v1")
	if wrote, f, err := d.WriteArtifact("plan.md", []byte("v3")); !wrote || f != nil || err != nil {
		t.Errorf("%v, %v, %v", wrote, f, err)
	}
}

func TestArtifactsStayInTheRun(t *testing.T) {
	d := Dir{t.TempDir()}
	for _, name := range []string{"", ".", "../x.md", "/x.md", "a/../../x.md"} {
		if _, _, err := d.WriteArtifact(name, nil); err == nil {
			t.Errorf("wrote %q", name)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	outside := t.TempDir()
	secret := put(t, outside+"/plan.md", "theirs")
	if err := os.Symlink(outside, d.Abs("link")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.WriteArtifact("link/new.md", nil); len(codes(nil, err)) != 1 || codes(nil, err)[0] != "path_outside_roots" {
		t.Errorf("through a folder: %v", err)
	}
	if err := os.Symlink(secret, d.Abs("plan.md")); err != nil {
		t.Fatal(err)
	}
	if _, f, err := d.WriteArtifact("plan.md", []byte("v1")); err != nil || f == nil || f.Code != "artifact_planted" || content(t, secret) != "theirs" {
		t.Errorf("through a link: %v, %v", f, err)
	}
}

func TestWriteArtifactsKeepsTheRules(t *testing.T) {
	d := Dir{t.TempDir()}
	put(t, d.Abs("planted.md"), "theirs")
	first := map[string][]byte{"plan.md": []byte("v1"), "facts.json": []byte("v1"), "planted.md": []byte("v1")}
	if findings, err := d.WriteArtifacts(first); err != nil || len(findings) != 1 || findings[0].Code != "artifact_planted" {
		t.Fatalf("%v, %v", findings, err)
	}
	put(t, d.Abs("plan.md"), "mine")
	second := map[string][]byte{"plan.md": []byte("v2"), "facts.json": []byte("v2")}
	if findings, err := d.WriteArtifacts(second); err != nil || len(findings) != 1 || findings[0].Code != "artifact_edited_by_hand" {
		t.Fatalf("%v, %v", findings, err)
	}
	for name, want := range map[string]string{"plan.md": "mine", "plan.new.md": "v2", "facts.json": "v2", "planted.md": "theirs"} {
		if got := content(t, d.Abs(name)); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	for data, want := range map[string]bool{"v2": true, "v1": true, "v3": false} {
		if got, err := d.WroteIt("facts.json", []byte(data)); err != nil || got != want {
			t.Errorf("WroteIt(%s) = %v, %v", data, got, err)
		}
	}
}
