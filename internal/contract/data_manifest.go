package contract

// DataManifest is data_manifest.json: what data the training reads, what a sample is, and how it was divided.
type DataManifest struct {
	TrainSource       string         `json:"train_source"`
	ValSource         string         `json:"val_source"`
	TestSource        string         `json:"test_source"`
	Files             []DataFile     `json:"files"`
	InputFormat       string         `json:"input_format"`
	DomainMetadata    map[string]any `json:"domain_metadata"`
	Schema            DataSchema     `json:"schema"`
	SplitStrategy     string         `json:"split_strategy"`
	Sampling          string         `json:"sampling"`
	Normalization     string         `json:"normalization"`
	Augmentation      string         `json:"augmentation"`
	CollateOrBatching string         `json:"collate_or_batching"`
	OutputFiles       []string       `json:"output_files"`
	Unknown           Unknown        `json:"-"`
}

// DataFile is one file the data consists of, with what proves which bytes were meant. Part is train, val, test or
// empty; Rows is nil where rows were not counted. A lone string is taken as the path.
type DataFile struct {
	Path    string  `json:"path" lone:"true"`
	Part    string  `json:"part,omitempty"`
	SHA256  string  `json:"sha256,omitempty"`
	Bytes   int64   `json:"bytes,omitempty"`
	Rows    *int64  `json:"rows,omitempty"`
	Unknown Unknown `json:"-"`
}

// DataSchema is the sample contract: what identifies a sample, what goes in and what is predicted, by column name.
type DataSchema struct {
	ID       string       `json:"id"`
	Features []string     `json:"features"`
	Target   TargetColumn `json:"target"`
	Group    string       `json:"group,omitempty"`
	Time     string       `json:"time,omitempty"`
	Unknown  Unknown      `json:"-"`
}

// TargetColumn is the predicted column. A lone string is taken as the name.
type TargetColumn struct {
	Name    string  `json:"name" lone:"true"`
	Type    string  `json:"type"`
	Unit    string  `json:"unit"`
	Unknown Unknown `json:"-"`
}
