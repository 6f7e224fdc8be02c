package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// markerSuffix is added to a checkpoint's name for its marker (formats.md).
const markerSuffix = ".complete.json"

// maxMarker bounds a marker, in bytes.
const maxMarker = 64 << 10

// Marker is what the writer says of a file that it finished: <file>.complete.json.
type Marker struct {
	SHA256 string   `json:"sha256"`
	Bytes  *int64   `json:"bytes"` // nil when the marker does not say
	Step   *int64   `json:"step,omitempty"`
	Epoch  *float64 `json:"epoch,omitempty"`
	Holds  []string `json:"holds,omitempty"`
}

// readMarker reads the marker of a checkpoint; nil when there is none, and when it can't be read, with the finding.
func readMarker(path string) (*Marker, []finding.Finding, error) {
	name := path + markerSuffix
	stat, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, []finding.Finding{{
			Code: "checkpoint_no_marker", Severity: finding.Note, What: "no marker says that the checkpoint was written to its end",
			Where: &finding.Where{Path: path}, Expected: name,
		}}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read marker: %w", err)
	}
	malformed := func(why string) []finding.Finding {
		return []finding.Finding{{
			Code: "checkpoint_marker_malformed", Severity: finding.Warning, What: "the marker " + why, Where: &finding.Where{Path: name},
			Expected: `{"sha256": "sha256:…", "bytes": 812, "step": 840, "epoch": 7, "holds": ["model", "optimizer"]}`,
			Remedy:   "treat the checkpoint as one without a marker",
		}}
	}
	if !stat.Mode().IsRegular() {
		return nil, malformed("is not a regular file"), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("read marker: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxMarker+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read marker: %w", err)
	}
	if len(data) > maxMarker {
		return nil, malformed(fmt.Sprintf("has more than %d bytes", maxMarker)), nil
	}
	var marker Marker
	if err := json.Unmarshal(data, &marker); err != nil {
		return nil, malformed("is not the expected JSON: " + err.Error()), nil
	}
	if marker.SHA256 == "" && marker.Bytes == nil {
		return nil, malformed("has neither sha256 nor bytes"), nil
	}
	if marker.SHA256 != "" {
		marker.SHA256 = "sha256:" + strings.ToLower(strings.TrimPrefix(strings.TrimSpace(marker.SHA256), "sha256:"))
	}
	return &marker, nil, nil
}

// compareMarker holds the file against its marker. Only a matching hash, or a matching size of a file too large to hash
// here, makes a file complete that its format can't vouch for; nothing heals one that its format shows to be broken.
func (i *Info) compareMarker() []finding.Finding {
	m := i.Marker
	if m == nil {
		return nil
	}
	var against []string
	if m.Bytes != nil && *m.Bytes != i.Bytes {
		against = append(against, fmt.Sprintf("it has %d bytes and the marker says %d", i.Bytes, *m.Bytes))
	}
	if m.SHA256 != "" && i.SHA256 != "" && m.SHA256 != i.SHA256 {
		against = append(against, fmt.Sprintf("its hash is %s and the marker says %s", short(i.SHA256), short(m.SHA256)))
	}
	if m.Epoch != nil && i.Epoch != nil && math.Abs(*m.Epoch-*i.Epoch) > 1e-9 {
		against = append(against, fmt.Sprintf("it is of epoch %g and the marker says %g", *i.Epoch, *m.Epoch))
	}
	if m.Step != nil && i.Step != nil && *m.Step != *i.Step {
		against = append(against, fmt.Sprintf("it is of step %d and the marker says %d", *i.Step, *m.Step))
	}
	if len(against) > 0 {
		if i.Complete == Complete {
			i.Complete = Unknown
		}
		if m.Bytes != nil && i.Bytes < *m.Bytes {
			i.Complete = Truncated
		}
		i.Why = append(i.Why, "the marker contradicts the file")
		return []finding.Finding{{
			Code: "checkpoint_marker_mismatch", Severity: finding.Error, What: "the file is not the one that its marker describes: " + strings.Join(against, "; "),
			Where: &finding.Where{Path: i.Path}, Expected: "what " + i.Path + markerSuffix + " says",
			Remedy: "do not resume from it: use an earlier one",
		}}
	}
	i.fromMarker(*m)
	return nil
}

// fromMarker takes what only the marker knows.
func (i *Info) fromMarker(m Marker) {
	switch {
	case m.SHA256 != "" && i.SHA256 != "":
		i.Why = append(i.Why, "sha256 equals the marker's")
	case m.Bytes != nil:
		i.Why = append(i.Why, "size equals the marker's; the hash was not compared")
	default:
		i.Why = append(i.Why, "the marker's hash was not compared")
	}
	hashed := m.SHA256 != "" && i.SHA256 != ""
	if i.Complete == Unknown && (hashed || m.Bytes != nil) {
		i.Complete = Complete
	}
	if i.Epoch == nil {
		i.Epoch = m.Epoch
	}
	if i.Step == nil {
		i.Step = m.Step
	}
	// The writer's list is closer to the truth than top-level names, which may be a script's own.
	if len(m.Holds) > 0 {
		i.Holds = nil
		for _, part := range m.Holds {
			i.Holds = addPart(i.Holds, part)
		}
		i.Why = append(i.Why, "contents as the marker lists them")
	}
}

func short(hash string) string { return hash[:min(len(hash), len("sha256:")+12)] + "…" }
