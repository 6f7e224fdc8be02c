package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// A list that has more than a page is read to its end by its cursors, without gap or repetition, in both eras.
func TestAListIsReadToItsEnd(t *testing.T) {
	s := New(Options{Resources: crowded{}, Log: zerolog.Nop()})
	for era, meta := range map[string]string{"legacy": "", "modern": `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`} {
		var uris []string
		cursor, pages := "", 0
		for ; pages == 0 || cursor != "" && pages < 5; pages++ {
			line := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":%q%s}}`, cursor, meta)
			encoded, err := json.Marshal(s.HandleMessage(t.Context(), json.RawMessage(line)))
			if err != nil {
				t.Fatal(err)
			}
			var page struct {
				Result struct {
					Resources  []struct{ URI string }
					NextCursor string
				}
			}
			if err := json.Unmarshal(encoded, &page); err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Result.Resources {
				uris = append(uris, r.URI)
			}
			cursor = page.Result.NextCursor
		}
		const want = "skill://demo/SKILL.md run://r-1/training_plan.md job://j-1/stdout.log run://r-1/training_request.json run://r-2/training_plan.md run://r-1/validation_report.md"
		if got := strings.Join(uris, " "); got != want || pages != 2 {
			t.Errorf("%s: %d pages: %s", era, pages, got)
		}
	}
}
