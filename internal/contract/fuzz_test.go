package contract

import (
	"bytes"
	"testing"
)

// Whatever is sent, decoding does not panic, and a handoff that was taken is written, read and written again to the same
// bytes and the same hash.
func FuzzDecodeHandoff(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `"a: b"`, `[`, `{"a":`, "a: &a [*a]", "? [x]\n: y", "<<: 1", "a: .inf", "- a\n- b", "{a: 1, b}",
		`{"step_handoff": {"step_id": "s1", "inputs": {"parameters": {"batch_size": "32", "extra": {"x": 1e999, "y": -0}}}}}`,
		`{"required_outputs": "- a\n- b", "resource_bindings": ["a", {"path": 1}], "inputs": "attempt: 0x10"}`,
		`{"Step-ID": 1, "stepId": 2, "x": {"": null, "\u0000": "\ud800"}}`,
		"step_id: 0012\ninputs:\n  data: {domain_metadata: {1: 1_000, d: 2020-01-01, n: ~, s: 1:30}}\nnew: !!python/object {a: b}\n",
		"```json\n{\"step_id\": \"<&>\"}\n```", "base: &b {a: 1}\nx: {<<: [*b, *b], c: 0o17}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _, _ = DecodeCall(raw, []string{"launch", "data"})
		first, _, err := DecodeHandoff(raw)
		if err != nil {
			return
		}
		written, err := encode(first, false)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		second, _, err := DecodeHandoff(written)
		if err != nil {
			t.Fatalf("read back %s: %v", written, err)
		}
		again, err := encode(second, false)
		if err != nil || !bytes.Equal(written, again) {
			t.Fatalf("first  %s\nsecond %s, %v", written, again, err)
		}
		if sha := HandoffSHA256(first); sha == "" || sha != HandoffSHA256(second) {
			t.Fatalf("hash %q of %s changes", sha, written)
		}
	})
}
