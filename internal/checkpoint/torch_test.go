package checkpoint

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// expected is what PyTorch itself finds in a file of testdata/torch (make.py).
func expected(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/torch/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[name], into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func readTorch(t *testing.T, name string) (Info, []string) {
	t.Helper()
	info, found, err := Read(t.Context(), filepath.Join("testdata/torch", name), Options{Tensors: 1000, Checksums: true})
	if err != nil {
		t.Fatal(err)
	}
	return info, codes(found)
}

func TestTensorsAreThoseThatPyTorchLoads(t *testing.T) {
	for name, want := range map[string]struct {
		holds []string
		epoch float64 // 0 = none
		step  int64
		codes []string
	}{
		"full.pt":        {holds: []string{"model", "optimizer", "scheduler", "epoch", "step", "rng"}, epoch: 3, step: 300},
		"weights.pt":     {holds: []string{"model"}},
		"protocol4.pt":   {holds: []string{"model"}},
		"module.pt":      {holds: []string{"model"}, codes: []string{"checkpoint_needs_classes"}},
		"optimizer.pt":   {holds: []string{"optimizer"}},
		"gan.pt":         {holds: []string{"generator", "optimizer", "epoch"}, epoch: 1},
		"sgd-epoch17.pt": {holds: []string{"model", "optimizer", "epoch"}, epoch: 17},
	} {
		info, found := readTorch(t, name)
		if info.Complete != Complete || info.Format != FormatPyTorchZip || !slices.Equal(found, want.codes) {
			t.Errorf("%s: %s %s %v", name, info.Format, info.Complete, found)
		}
		if diff := cmp.Diff(want.holds, info.Holds); diff != "" {
			t.Errorf("%s: holds %s", name, diff)
		}
		if (info.Epoch != nil) != (want.epoch > 0) || info.Epoch != nil && *info.Epoch != want.epoch {
			t.Errorf("%s: epoch %v", name, info.Epoch)
		}
		if (info.Step != nil) != (want.step > 0) || info.Step != nil && *info.Step != want.step {
			t.Errorf("%s: step %v", name, info.Step)
		}
		var tensors []Tensor
		expected(t, name, &tensors)
		got := slices.Clone(info.Tensors)
		for i := range got {
			got[i].Part = ""
		}
		if diff := cmp.Diff(tensors, got); diff != "" {
			t.Errorf("%s (-PyTorch +read):\n%s", name, diff)
		}
		if info.TensorCount != len(tensors) {
			t.Errorf("%s: %d tensors", name, info.TensorCount)
		}
	}
}

func TestTiedWeightsCountOnce(t *testing.T) {
	var parameters int64
	expected(t, "full.pt parameters", &parameters)
	if info, _ := readTorch(t, "full.pt"); info.Parameters != parameters || parameters == 0 {
		t.Errorf("%d parameters, PyTorch counts %d", info.Parameters, parameters)
	}
	// safetensors saved the tied weights twice: 44 more.
	if info, found := readTorch(t, "model.safetensors"); info.Parameters != parameters+44 || info.TensorCount != 11 || info.Step == nil || *info.Step != 300 || len(found) > 0 ||
		!slices.ContainsFunc(info.Tensors, func(v Tensor) bool {
			return v.Name == "body.0.weight" && v.Dtype == "float32" && slices.Equal(v.Shape, []int64{6, 4}) && v.Part == "model"
		}) {
		t.Errorf("%+v %v", info, found)
	}
}

// The classic attack: a pickle that runs a command when it is loaded. It is read, not loaded.
func TestAPickleThatRunsCode(t *testing.T) {
	info, found := readTorch(t, "evil.pt")
	if !slices.Equal(found, []string{"checkpoint_runs_code"}) || info.TensorCount != 1 || info.Tensors[0].Name != "model.w" {
		t.Errorf("%+v %v", info, found)
	}
}

// A checkpoint cut inside its tensors still names them all.
func TestCutCheckpointNamesItsTensors(t *testing.T) {
	info, found := readTorch(t, "cut.pt")
	whole, _ := readTorch(t, "full.pt")
	if info.Complete != Truncated || !slices.Equal(found, []string{"checkpoint_truncated"}) {
		t.Errorf("%s %v", info.Complete, found)
	}
	if diff := cmp.Diff(whole.Tensors, info.Tensors); diff != "" || info.TensorCount == 0 {
		t.Error(diff)
	}
	if diff := cmp.Diff(whole.Holds, info.Holds); diff != "" {
		t.Error(diff)
	}
}

// One flipped bit among the weights is only seen by their checksum; one in the pickle, or a storage that lacks bytes, by structure.
func TestDamageInside(t *testing.T) {
	whole, err := os.ReadFile("testdata/torch/full.pt")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	place := func(suffix string) int64 {
		for _, f := range archive.File {
			if strings.HasSuffix(f.Name, suffix) {
				at, err := f.DataOffset()
				if err != nil {
					t.Fatal(err)
				}
				return at
			}
		}
		t.Fatal(suffix)
		return 0
	}
	flipped := func(at int64, b byte) []byte {
		data := slices.Clone(whole)
		data[at] = b
		return data
	}
	weights, pickle := place("/data/0"), place("/data.pkl")
	for _, c := range []struct {
		name      string
		data      []byte
		checksums bool
		code      string
		at        int64
	}{
		{"flipped weight, by structure", flipped(weights+2, whole[weights+2]^0x10), false, "", 0},
		{"flipped weight, by checksum", flipped(weights+2, whole[weights+2]^0x10), true, "checkpoint_corrupt", weights},
		{"no instruction", flipped(pickle+2, 0xff), false, "checkpoint_corrupt", pickle + 2},
		{"stack runs empty", flipped(pickle+2, 'R'), false, "checkpoint_corrupt", pickle + 2},
		{"a storage gone", rezip(t, archive, func(name string, data []byte) ([]byte, bool) { return data, !strings.HasSuffix(name, "/data/1") }), false, "checkpoint_corrupt", -1},
		{"a storage short", rezip(t, archive, func(name string, data []byte) ([]byte, bool) {
			if strings.HasSuffix(name, "/data/1") {
				return data[:4], true
			}
			return data, true
		}), false, "checkpoint_corrupt", -1},
		{"pickle cut", rezip(t, archive, func(name string, data []byte) ([]byte, bool) {
			if strings.HasSuffix(name, "/data.pkl") {
				return data[:len(data)-1], true
			}
			return data, true
		}), false, "checkpoint_corrupt", -1},
	} {
		info, found, err := Read(t.Context(), put(t, "c.pt", c.data), Options{Checksums: c.checksums})
		if err != nil {
			t.Fatal(err)
		}
		if c.code == "" {
			if info.Complete != Complete || len(codes(found)) > 0 {
				t.Errorf("%s: %s %v", c.name, info.Complete, found)
			}
			continue
		}
		if info.Complete == Complete || !slices.Equal(codes(found), []string{c.code}) || c.at >= 0 && found[len(found)-1].Where.Byte != c.at {
			t.Errorf("%s: %s %v", c.name, info.Complete, found)
		}
	}
}

// rezip writes the archive anew, with other bytes of its entries or without them.
func rezip(t *testing.T, archive *zip.Reader, change func(string, []byte) ([]byte, bool)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range archive.File {
		source, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(source)
		if err != nil {
			t.Fatal(err)
		}
		if data, keep := change(f.Name, data); keep {
			addEntry(t, w, f.Name, data)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func addEntry(t testing.TB, w *zip.Writer, name string, data []byte) {
	t.Helper()
	entry, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write(data); err != nil {
		t.Fatal(err)
	}
}

// pickled is a whole zip around a pickle.
func pickled(t testing.TB, pickle string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	addEntry(t, w, "x/data.pkl", []byte(pickle))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Pickles made to exhaust whoever follows them end in time and within memory.
func TestHostilePickles(t *testing.T) {
	bomb := "\x80\x02]q\x00" // a list of ten times the list before, twelve deep
	for range 12 {
		bomb += "(" + strings.Repeat("h\x00", 10) + "lq\x00"
	}
	deep := "\x80\x02" + strings.Repeat("]", 10_000) + strings.Repeat("a", 9_999) + "."
	circle := "\x80\x02]q\x00h\x00a."
	for _, c := range []struct{ name, pickle, code string }{
		{"shared lists", bomb + ".", ""},
		{"nested lists", deep, ""},
		{"a list in itself", circle, ""},
		{"two million values", "\x80\x02" + strings.Repeat("]", maxValues+1) + ".", "checkpoint_pickle_unread"},
		{"two million marks", "\x80\x02" + strings.Repeat("(", maxValues+2) + ".", "checkpoint_pickle_unread"},
		{"a text of 2^32 bytes", "\x80\x02X\xff\xff\xff\xffabc.", "checkpoint_corrupt"},
		{"a text of 2^63 bytes", "\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xffabc.", "checkpoint_corrupt"},
		{"memo of nothing", "\x80\x02h\x07.", "checkpoint_corrupt"},
		{"unhashable key", "\x80\x02}])s.", ""},
		{"tensor of 2^63 elements", "\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n(\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\x09t)tRs.", "checkpoint_corrupt"},
	} {
		info, found, err := Read(t.Context(), put(t, "c.pt", pickled(t, c.pickle)), Options{Tensors: 10})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := strings.Join(codes(found), " "); got != c.code {
			t.Errorf("%s: %q, want %q; %+v", c.name, got, c.code, info)
		}
	}
}

// seeking writes zeros as holes, so that a file of 10 GB takes no room.
type seeking struct{ file *os.File }

func (s seeking) Write(p []byte) (int, error) {
	if len(p) == len(zeros) {
		_, err := s.file.Seek(int64(len(p)), io.SeekCurrent)
		return len(p), err
	}
	return s.file.Write(p)
}

var zeros = make([]byte, 64<<20)

// Of a checkpoint of 10 GB only the structure is read.
func TestTenGigabytes(t *testing.T) {
	const size = 160 * (64 << 20) // 10 GiB
	dir := t.TempDir()
	elements := int64(size / 4)
	header := fmt.Sprintf(`{"w":{"dtype":"F32","shape":[%d,1024],"data_offsets":[0,%d]}}`, elements/1024, int64(size))
	safe := filepath.Join(dir, "big.safetensors")
	if err := os.WriteFile(safe, safetensors(header, 0), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(safe, int64(8+len(header)+size)); err != nil {
		t.Fatal(err)
	}
	torch := filepath.Join(dir, "big.pt")
	file, err := os.Create(torch)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(seeking{file})
	four := func(n int64) string { return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}) }
	eight := func(n int64) string { return four(n&0xffffffff) + four(n>>32) }
	addEntry(t, w, "big/data.pkl", []byte("\x80\x02}X\x05\x00\x00\x00model}(X\x01\x00\x00\x00w"+
		"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"+
		"\x8a\x08"+eight(elements)+"tQK\x00\x8a\x08"+eight(elements)+"\x85K\x01\x85\x89}tRus."))
	raw, err := w.CreateRaw(&zip.FileHeader{Name: "big/data/0", Method: zip.Store, CRC32: crc32.ChecksumIEEE(nil) + 1, CompressedSize64: size, UncompressedSize64: size})
	if err != nil {
		t.Fatal(err)
	}
	for range size / len(zeros) {
		if _, err := raw.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{safe, torch} {
		began := time.Now()
		info, found, err := Read(t.Context(), path, Options{HashLimit: 64 << 20, Tensors: 10})
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s took %s", path, took)
		}
		if err != nil || info.Complete != Complete || info.SHA256 != "" || info.TensorBytes != size || info.TensorCount != 1 || len(codes(found)) > 0 {
			t.Errorf("%+v %v %v", info, found, err)
		}
	}
}

func TestReadingWholeCanBeStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Read(ctx, "testdata/torch/full.pt", Options{HashLimit: 1 << 40}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzPickle(f *testing.F) {
	for _, name := range []string{"full.pt", "weights.pt", "protocol4.pt", "module.pt", "evil.pt"} {
		archive, err := zip.OpenReader(filepath.Join("testdata/torch", name))
		if err != nil {
			f.Fatal(err)
		}
		source, err := archive.File[0].Open()
		if err != nil {
			f.Fatal(err)
		}
		data, err := io.ReadAll(source)
		if err := errors.Join(err, archive.Close()); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := contents{keep: 100}
		if _, err := c.takePickle(bytes.NewReader(data), "c.pt", 0, int64(len(data)), true); err != nil {
			t.Fatal(err)
		}
		if c.tensorBytes < 0 || c.parameters < 0 {
			t.Errorf("%d bytes, %d parameters", c.tensorBytes, c.parameters)
		}
		for _, found := range c.findings {
			if found.Where.Byte < 0 || found.Where.Byte > int64(len(data)) {
				t.Errorf("%v in %d bytes", found, len(data))
			}
		}
	})
}
