package contract

// The JSON methods of the types. Each writes known fields in struct order and unknown ones after them, and reads as
// Decode does, so that unknown fields survive wherever a value is nested.

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v StepHandoff) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *StepHandoff) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v TaskContext) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *TaskContext) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v ResourceBinding) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *ResourceBinding) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v Inputs) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *Inputs) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v ExecutionFlags) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *ExecutionFlags) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v InstructionSource) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *InstructionSource) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v Model) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *Model) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v Checkpoint) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *Checkpoint) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v Data) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *Data) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v Parameters) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *Parameters) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v Runtime) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *Runtime) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v ExecutionResult) MarshalJSON() ([]byte, error) { return encode(v, v.Attempt != nil) }

// UnmarshalJSON reads as Decode does.
func (v *ExecutionResult) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v Observation) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *Observation) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v TrainingRequest) MarshalJSON() ([]byte, error) { return encode(v, true) }

// UnmarshalJSON reads as Decode does.
func (v *TrainingRequest) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RequestStep) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RequestStep) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RequestTask) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RequestTask) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RequestData) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RequestData) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RequestTraining) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RequestTraining) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RequestRuntime) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RequestRuntime) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RequestConstraints) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RequestConstraints) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RunManifest) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RunManifest) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v DataManifest) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *DataManifest) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v DataFile) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *DataFile) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v DataSchema) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *DataSchema) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v TargetColumn) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *TargetColumn) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RuntimeRequest) MarshalJSON() ([]byte, error) { return encode(v, true) }

// UnmarshalJSON reads as Decode does.
func (v *RuntimeRequest) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v EnvironmentRequirements) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *EnvironmentRequirements) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v KnowledgeInputs) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *KnowledgeInputs) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RuntimeResult) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RuntimeResult) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RuntimeEvidence) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RuntimeEvidence) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v CoderHandoff) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *CoderHandoff) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RetrievalRequest) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RetrievalRequest) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RetrievalFilters) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RetrievalFilters) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v RetrievalResult) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *RetrievalResult) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

// MarshalJSON writes the fields in contract order, unknown ones last.
func (v MatchedResource) MarshalJSON() ([]byte, error) { return encode(v, false) }

// UnmarshalJSON reads as Decode does.
func (v *MatchedResource) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }
