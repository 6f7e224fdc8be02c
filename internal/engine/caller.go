package engine

// Caller is the one who called a tool, seen from inside: someone who can be told how far long work is. Internal code
// never learns whether that is an MCP client or a terminal.
type Caller interface {
	// Progress tells how far the call is. It must not block and may be called from any goroutine.
	Progress(Progress)
}

// Progress is one notice of long work. Done and Total count in the work's own unit (phases, epochs, seconds); Total is
// zero when the end is not known. Done never goes down within one call.
type Progress struct {
	Phase   string
	Message string
	Done    float64
	Total   float64
}

// Silent is a Caller who wants to hear nothing.
var Silent Caller = silent{}

type silent struct{}

func (silent) Progress(Progress) {}
