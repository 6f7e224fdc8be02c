package checkpoint

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

var update = flag.Bool("update", false, "write the golden file anew")

// The folder in testdata has one checkpoint of each kind of trouble; the golden file is what List says about it.
func TestListGolden(t *testing.T) {
	// Checkpoints of one epoch are listed by their time, which a checkout does not keep: it is set here, by name.
	files, err := filepath.Glob("testdata/whole/*")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		at := time.Date(2026, 11, 30, 12, 0, i, 0, time.UTC)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	infos, found, err := List("testdata/whole")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, i := range infos {
		epoch, step := "-", "-"
		if i.Epoch != nil {
			epoch = fmt.Sprint(*i.Epoch)
		}
		if i.Step != nil {
			step = fmt.Sprint(*i.Step)
		}
		yes, known := HoldsOptimizer(i)
		fmt.Fprintf(&b, "%s: %s, %s, %d bytes, epoch %s, step %s, marker %v\n  hash %.19s\n  holds %v, optimizer %v (known %v)\n  why: %s\n",
			filepath.Base(i.Path), i.Format, i.Complete, i.Bytes, epoch, step, i.Marker != nil, i.SHA256, i.Holds, yes, known, strings.Join(i.Why, "; "))
	}
	for _, f := range found {
		f.Where.Path = filepath.ToSlash(f.Where.Path)
		fmt.Fprintf(&b, "%s @%d %s\n", f.Severity, f.Where.Byte, strings.ReplaceAll(f.String(), "\\", "/"))
	}
	if *update {
		if err := os.WriteFile("testdata/whole.golden", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/whole.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error(diff)
	}
}

// torchZip is a container as torch.save writes it: stored entries, data.pkl first.
func torchZip(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{"epoch-0003/data.pkl", "epoch-0003/byteorder", "epoch-0003/data/0", "epoch-0003/version"} {
		entry, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write([]byte("\x80\x02N.")); err != nil { // the pickle of None
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// safetensors puts a header before n bytes of tensors.
func safetensors(header string, n int) []byte {
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(data, header...), make([]byte, n)...)
}

const twoTensors = `{"__metadata__":{"format":"pt","epoch":"4","step":"480"},"layer.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"layer.bias":{"dtype":"BF16","shape":[2],"data_offsets":[24,28]}}`

func put(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func codes(found []finding.Finding) []string {
	var list []string
	for _, f := range found {
		if f.Code != "checkpoint_no_marker" {
			list = append(list, f.Code)
		}
	}
	return list
}

func TestInspectFormats(t *testing.T) {
	for _, c := range []struct {
		name, file       string
		data             []byte
		format, complete string
		epoch            float64 // -1 = none
		holds            []string
		codes            []string
		at               int64 // byte of the first finding
	}{
		{"torch zip", "epoch-0003.pt", torchZip(t), FormatPyTorchZip, Complete, 3, nil, nil, 0},
		{"cut torch zip", "epoch-0003.pt", torchZip(t)[:200], FormatPyTorchZip, Truncated, 3, nil, []string{"checkpoint_truncated"}, 200},
		{"zip of something else", "a.zip", []byte("PK\x05\x06" + strings.Repeat("\x00", 18)), FormatUnknown, Complete, -1, nil, nil, 0},
		{"safetensors", "m.safetensors", safetensors(twoTensors, 28), FormatSafetensors, Complete, 4, []string{"model"}, nil, 0},
		{"cut tensors", "m.safetensors", safetensors(twoTensors, 27), FormatSafetensors, Truncated, 4, []string{"model"}, []string{"checkpoint_truncated"}, int64(8 + len(twoTensors) + 27)},
		{"trailing bytes are no corruption", "m.safetensors", safetensors(twoTensors, 30), FormatSafetensors, Complete, 4, []string{"model"}, []string{"checkpoint_trailing_bytes"}, int64(8 + len(twoTensors) + 28)},
		{"cut header", "m.safetensors", safetensors(twoTensors, 0)[:50], FormatSafetensors, Truncated, -1, nil, []string{"checkpoint_truncated"}, 50},
		{"cut length", "m.safetensors", []byte{1, 2}, FormatSafetensors, Truncated, -1, nil, []string{"checkpoint_truncated"}, 2},
		{"shape and range differ", "m.safetensors", safetensors(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4), FormatSafetensors, Unknown, -1, nil, []string{"checkpoint_corrupt"}, 61},
		{"overlap", "m.safetensors", safetensors(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`, 6), FormatSafetensors, Unknown, -1, []string{"model"}, []string{"checkpoint_corrupt"}, 8},
		{"header of 2^63", "m.safetensors", append([]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, "{}"...), FormatSafetensors, Unknown, -1, nil, []string{"checkpoint_corrupt"}, 0},
		{"offset overflow", "m.safetensors", safetensors(`{"w":{"dtype":"X9","shape":[],"data_offsets":[0,9223372036854775807]}}`, 4), FormatSafetensors, Truncated, -1, []string{"model"}, []string{"checkpoint_truncated"}, 82},
		{"optimizer in safetensors", "m.safetensors", safetensors(`{"model.w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"optimizer.m":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), FormatSafetensors, Complete, -1, []string{"model", "optimizer"}, nil, 0},
		{"json", "ckpt_epoch=12-step=300.json", []byte(` {"global_step": 300.0, "params": {}, "opt_state": [1e-3]}` + "\n"), FormatJSON, Complete, 12, []string{"step", "model", "optimizer"}, nil, 0},
		{"cut json", "c.json", []byte(`{"epoch": 2, "model": [1, 2`), FormatJSON, Truncated, 2, []string{"epoch"}, []string{"checkpoint_truncated"}, 27},
		{"two values", "c.json", []byte(`{"epoch": 2} {"epoch": 3}`), FormatJSON, Unknown, 2, []string{"epoch"}, []string{"checkpoint_corrupt"}, 13},
		{"zeros after a power cut", "c.json", append([]byte(`{"epoch": 2, "w": [1,`), make([]byte, 20)...), FormatJSON, Unknown, 2, []string{"epoch"}, []string{"checkpoint_corrupt"}, 21},
		{"nested too deep", "c.json", []byte(strings.Repeat("[", 600)), FormatJSON, Unknown, -1, nil, []string{"checkpoint_corrupt"}, 513},
		{"legacy pickle is not loaded", "epoch_2.pt", []byte("\x80\x02}q\x00."), FormatUnknown, Unknown, 2, nil, []string{"checkpoint_format_unknown"}, 0},
		{"empty", "c.pt", nil, FormatUnknown, Truncated, -1, nil, []string{"checkpoint_empty"}, 0},
	} {
		info, found, err := Inspect(put(t, c.file, c.data))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if info.Format != c.format || info.Complete != c.complete || info.Bytes != int64(len(c.data)) || info.SHA256 == "" {
			t.Errorf("%s: %+v", c.name, info)
		}
		if (info.Epoch != nil) != (c.epoch >= 0) || info.Epoch != nil && *info.Epoch != c.epoch {
			t.Errorf("%s: epoch %v", c.name, info.Epoch)
		}
		if !slices.Equal(info.Holds, c.holds) || !slices.Equal(codes(found), c.codes) {
			t.Errorf("%s: holds %v, %v", c.name, info.Holds, found)
			continue
		}
		for _, f := range found {
			if len(c.codes) > 0 && f.Code == c.codes[0] && f.Where.Byte != c.at {
				t.Errorf("%s: byte %d, want %d", c.name, f.Where.Byte, c.at)
			}
		}
	}
}

func TestInspectWhatIsNotAFile(t *testing.T) {
	dir := t.TempDir()
	for path, code := range map[string]string{filepath.Join(dir, "none.pt"): "checkpoint_missing", dir: "checkpoint_not_a_file"} {
		info, found, err := Inspect(path)
		if err != nil || len(found) != 1 || found[0].Code != code || info.Complete != Unknown {
			t.Errorf("%s: %+v %v %v", path, info, found, err)
		}
	}
}

// Cut anywhere, a checkpoint is never called complete, with and without its marker.
func TestCutAnywhereIsNeverComplete(t *testing.T) {
	whole := map[string][]byte{
		"c.pt": torchZip(t), "c.safetensors": safetensors(twoTensors, 28),
		"c.json": []byte(`{"epoch": 7, "model": {"w": [1.5, "\"x", null]}, "optimizer": {}}`),
	}
	for name, data := range whole {
		path := put(t, name, data)
		marker := path + markerSuffix
		for _, marked := range []bool{false, true} {
			if marked {
				if err := os.WriteFile(path, data, 0o644); err != nil {
					t.Fatal(err)
				}
				info, _, err := Inspect(path)
				if err != nil || info.Complete != Complete {
					t.Fatalf("%s whole: %+v %v", name, info, err)
				}
				if err := os.WriteFile(marker, fmt.Appendf(nil, `{"sha256": %q, "bytes": %d}`, info.SHA256, info.Bytes), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for cut := range len(data) {
				if err := os.WriteFile(path, data[:cut], 0o644); err != nil {
					t.Fatal(err)
				}
				info, found, err := Inspect(path)
				if err != nil {
					t.Fatal(err)
				}
				// A few bytes of a zip are no zip yet: unknown is right without a marker.
				if info.Complete == Complete || !marked && info.Complete != Truncated && info.Format != FormatUnknown {
					t.Errorf("%s cut at %d (marker %v): %s %v", name, cut, marked, info.Complete, codes(found))
				}
				if marked && cut > 0 && (info.Complete != Truncated || !slices.Contains(codes(found), "checkpoint_marker_mismatch")) {
					t.Errorf("%s cut at %d: the marker was not held against it: %s %v", name, cut, info.Complete, codes(found))
				}
			}
		}
	}
}

func TestMarker(t *testing.T) {
	data := []byte("\x80\x02}q\x00.")
	path := put(t, "epoch-0002.pt", data)
	info, _, err := Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	other := "sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		name, marker, complete string
		codes                  []string
		holds                  []string
		optimizer, known       bool
	}{
		{"says all", fmt.Sprintf(`{"sha256":%q,"bytes":6,"epoch":2,"step":9,"holds":["model","optimizer_state_dict"]}`, info.SHA256), Complete, nil, []string{"model", "optimizer"}, true, true},
		{"bare upper-case hash", fmt.Sprintf(`{"sha256":%q,"holds":["model","epoch"]}`, strings.ToUpper(info.SHA256[7:])), Complete, nil, []string{"model", "epoch"}, false, true},
		{"a part of unknown kind", fmt.Sprintf(`{"sha256":%q,"holds":["model","velocity"]}`, info.SHA256), Complete, nil, []string{"model", "velocity"}, false, false},
		{"other hash", fmt.Sprintf(`{"sha256":%q,"bytes":6}`, other), Unknown, []string{"checkpoint_marker_mismatch"}, nil, false, false},
		{"more bytes", `{"bytes":60}`, Truncated, []string{"checkpoint_marker_mismatch"}, nil, false, false},
		{"fewer bytes", `{"bytes":3}`, Unknown, []string{"checkpoint_marker_mismatch"}, nil, false, false},
		{"nothing", `{"epoch":2}`, Unknown, []string{"checkpoint_marker_malformed"}, nil, false, false},
		{"cut", `{"sha256":"abc`, Unknown, []string{"checkpoint_marker_malformed"}, nil, false, false},
		{"too long", strings.Repeat(" ", maxMarker+1), Unknown, []string{"checkpoint_marker_malformed"}, nil, false, false},
	} {
		if err := os.WriteFile(path+markerSuffix, []byte(c.marker), 0o644); err != nil {
			t.Fatal(err)
		}
		info, found, err := Inspect(path)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(codes(found), func(code string) bool { return code == "checkpoint_format_unknown" })
		if info.Complete != c.complete || !slices.Equal(got, c.codes) || !slices.Equal(info.Holds, c.holds) {
			t.Errorf("%s: %s %v %v", c.name, info.Complete, got, info.Holds)
		}
		if yes, known := HoldsOptimizer(info); yes != c.optimizer || known != c.known {
			t.Errorf("%s: optimizer %v, known %v", c.name, yes, known)
		}
	}
}

func TestMarkerOfAnotherEpoch(t *testing.T) {
	path := put(t, "last.json", []byte(`{"epoch": 6, "step": 10, "model": {}}`))
	if err := os.WriteFile(path+markerSuffix, []byte(`{"bytes": 37, "epoch": 7, "step": 12}`), 0o644); err != nil {
		t.Fatal(err)
	}
	_, found, err := Inspect(path)
	if err != nil || !slices.Equal(codes(found), []string{"checkpoint_marker_mismatch"}) {
		t.Fatalf("%v %v", found, err)
	}
	if want := "it is of epoch 6 and the marker says 7; it is of step 10 and the marker says 12"; !strings.Contains(found[0].What, want) {
		t.Error(found[0].What)
	}
}

func TestALargeFileIsNotHashed(t *testing.T) {
	path := put(t, "m.safetensors", safetensors(twoTensors, 28))
	info, _, err := Read(t.Context(), path, Options{HashLimit: 10})
	if err != nil || info.SHA256 != "" || info.Complete != Complete {
		t.Errorf("%+v %v", info, err)
	}
	full, _, err := InspectFull(path)
	if err != nil || len(full.SHA256) != len("sha256:")+64 {
		t.Errorf("%+v %v", full, err)
	}
}

func TestListOrder(t *testing.T) {
	dir := t.TempDir()
	old := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for i, name := range []string{"epoch-0002.json", "epoch-0010.json", "step-5.json", "step-40.json", "a.json", "b.json"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(`{"model":{}}`), 0o644); err != nil {
			t.Fatal(err)
		}
		when := old.Add(time.Duration(i) * time.Hour)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sharded"), 0o755); err != nil {
		t.Fatal(err)
	}
	infos, _, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range infos {
		names = append(names, filepath.Base(info.Path))
	}
	want := []string{"epoch-0010.json", "epoch-0002.json", "step-40.json", "step-5.json", "b.json", "a.json"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestListOfNoFolder(t *testing.T) {
	infos, found, err := List(filepath.Join(t.TempDir(), "checkpoints"))
	if err != nil || len(infos) != 0 || len(found) != 1 || found[0].Code != "checkpoint_folder_missing" || found[0].Severity != finding.Note {
		t.Errorf("%v %v %v", infos, found, err)
	}
}

func FuzzInspect(f *testing.F) {
	f.Add(torchZip(f), []byte(`{"bytes": 3}`))
	f.Add(safetensors(twoTensors, 28), []byte(`{"sha256": "sha256:00", "holds": ["model"]}`))
	f.Add([]byte(`{"epoch": 7, "model": {"w": [1.5, NaN]}, "holds": ["optimizer"]}`), []byte(`{`))
	f.Add([]byte("PK\x05\x06"), []byte(``))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data, marker []byte) {
		path := filepath.Join(dir, "epoch-0001.pt")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+markerSuffix, marker, 0o644); err != nil {
			t.Fatal(err)
		}
		info, found, err := Inspect(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Complete == Complete && finding.Has(found, finding.Error) {
			t.Errorf("complete, and yet %v", found)
		}
		for _, problem := range found {
			if problem.Where == nil || problem.Where.Byte < 0 || problem.Where.Byte > int64(len(data)) {
				t.Errorf("%+v in a file of %d bytes", problem, len(data))
			}
		}
	})
}

// A writer that makes markers did not finish what lacks one, and one file is not two epochs.
func TestListOfPlantedCheckpoints(t *testing.T) {
	marked := func(dir, name, text string) {
		write(t, filepath.Join(dir, name), text)
		write(t, filepath.Join(dir, name+markerSuffix), fmt.Sprintf(`{"bytes": %d}`, len(text)))
	}
	for _, c := range []struct {
		name string
		make func(dir string)
		want string
	}{
		{"no marker beside ones that have", func(dir string) {
			marked(dir, "epoch-1.json", `{"model": 1}`)
			write(t, filepath.Join(dir, "epoch-2.json"), `{"model": 2}`)
			write(t, filepath.Join(dir, "config.json"), `{"layers": 2}`)
		}, "epoch-2.json warning checkpoint_no_marker"},
		{"nobody makes markers", func(dir string) {
			write(t, filepath.Join(dir, "epoch-1.json"), `{"model": 1}`)
			write(t, filepath.Join(dir, "epoch-2.json"), `{"model": 2}`)
		}, ""},
		{"one file under two names", func(dir string) {
			marked(dir, "epoch-1.json", `{"model": 1}`)
			marked(dir, "epoch-2.json", `{"model": 1}`)
		}, "epoch-2.json warning checkpoint_repeated"},
		{"the best and the last are one", func(dir string) {
			marked(dir, "epoch-2.json", `{"model": 1}`)
			marked(dir, "best.json", `{"model": 1}`)
		}, ""},
	} {
		dir := t.TempDir()
		c.make(dir)
		_, found, err := List(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			if f.Severity != finding.Note {
				got = append(got, fmt.Sprintf("%s %s %s", filepath.Base(f.Where.Path), f.Severity, f.Code))
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
