package evidence

import "time"

// Source is something that was captured once: sources.json.
type Source struct {
	ID         string    `json:"id"` // s1, s2, …
	Kind       string    `json:"kind"`
	Ref        string    `json:"ref"`    // where it came from, as people name it
	SHA256     string    `json:"sha256"` // of the original bytes; of the list of files for a folder
	Bytes      int64     `json:"bytes"`
	CapturedAt time.Time `json:"captured_at"` // UTC
	// KeptAs is the redacted copy, relative to the run; "" when only the hash was kept. KeptSHA256 is the copy's hash, so
	// that a quote written into it later is noticed.
	KeptAs     string `json:"kept_as"`
	KeptSHA256 string `json:"kept_sha256,omitempty"`
	Note       string `json:"note,omitempty"`
}

// The kinds of source that can be captured.
const (
	KindText       = "text"
	KindFile       = "file"
	KindDirectory  = "directory"
	KindDataset    = "dataset"
	KindCheckpoint = "checkpoint"
	KindHandoff    = "handoff"
	KindURL        = "url"
)

// The statuses of a fact: stated by a source, read between its lines, set in order to go on, stated by none.
const (
	Confirmed  = "CONFIRMED"
	Inferred   = "INFERRED"
	Assumption = "ASSUMPTION"
	Missing    = "MISSING"
)

// Fact is a field with a value and where it stands: facts.json. Start and End are the byte range of the quote in the kept
// copy of the source, which has the length of the original.
type Fact struct {
	ID          string   `json:"id"`    // f1, f2, …
	Field       string   `json:"field"` // dotted path of training_request.json, as in training.optimizer
	Value       any      `json:"value"`
	Status      string   `json:"status"`
	Source      string   `json:"source"`
	Quote       string   `json:"quote"`
	Start       int      `json:"start"`
	End         int      `json:"end"`
	By          string   `json:"by"` // server, agent, user
	Conflicts   []string `json:"conflicts"`
	VerifyLater string   `json:"verify_later"`
	Why         string   `json:"why,omitempty"`
	// InForce marks the one fact of a field that holds; the others are the conflicts it won.
	InForce bool `json:"in_force"`
}

// Claim is a statement about a run with a number: claims.json.
type Claim struct {
	ID       string         `json:"id"` // c1, c2, …
	Metric   string         `json:"metric"`
	Split    string         `json:"split"`
	Value    float64        `json:"value"`
	Unit     string         `json:"unit"`
	Level    string         `json:"level"`
	N        int            `json:"n,omitempty"`    // samples it was computed from
	Note     string         `json:"note,omitempty"` // which value of a series it is
	From     []Range        `json:"from"`
	Baseline map[string]any `json:"baseline,omitempty"` // what a trivial model scores on the same split
	Interval []float64      `json:"interval,omitempty"` // lower and upper bound, in Unit
}

// The levels of a claim: the script said so; the server computed it from the predictions; a fresh process made the
// predictions again.
const (
	Logged      = "logged"
	Recomputed  = "recomputed"
	Reevaluated = "reevaluated"
)

// Range is the place a claim came from: bytes Start to End of a file whose hash is SHA256.
type Range struct {
	Path   string `json:"path"`
	Start  int64  `json:"start"`
	End    int64  `json:"end"`
	SHA256 string `json:"sha256"`
}
