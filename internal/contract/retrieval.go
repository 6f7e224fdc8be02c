package contract

// RetrievalRequest asks for content from skills of type resource. Only UserRequest is required; ContentRequest is
// natural language, such as "usage and config", in English or Chinese. A lone string is taken as the user request.
type RetrievalRequest struct {
	UserRequest      string           `json:"user_request" lone:"true" jsonschema_description:"What the user wants, in their words."`
	TaskStateSummary string           `json:"task_state_summary,omitempty" jsonschema_description:"Where the task stands."`
	ContentRequest   string           `json:"content_request,omitempty" jsonschema_description:"What is wanted: summary, usage, principle, interface, config, planning or everything."`
	Filters          RetrievalFilters `json:"filters,omitzero" jsonschema_description:"Narrow the search; an exact name with a domain is a direct look-up."`
	Unknown          Unknown          `json:"-"`
}

// RetrievalFilters narrow a retrieval. An exact name in Keyword together with a Domain is a direct look-up.
type RetrievalFilters struct {
	Domain  string  `json:"domain,omitempty"`
	Keyword string  `json:"keyword,omitempty"`
	Unknown Unknown `json:"-"`
}

// RetrievalResult is what the resource skills offer for a request.
type RetrievalResult struct {
	Status           string            `json:"status" jsonschema:"enum=success,enum=partial,enum=failed"`
	QuerySummary     string            `json:"query_summary"`
	DetectedDomain   string            `json:"detected_domain"`
	TaskIntent       string            `json:"task_intent"`
	MatchedResources []MatchedResource `json:"matched_resources"`
	Unknown          Unknown           `json:"-"`
}

// MatchedResource is one resource that fits. Content is all a caller may consume of it; Path only identifies it.
type MatchedResource struct {
	Type        string  `json:"type"`
	Path        string  `json:"path"`
	Name        string  `json:"name"`
	WhyMatched  string  `json:"why_matched"`
	Limitations string  `json:"limitations"`
	Content     string  `json:"content"`
	Unknown     Unknown `json:"-"`
}

// WhyNamedLookup is the why_matched of a resource that was found by its exact name.
const WhyNamedLookup = "named_lookup"
