package trainer

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/policy"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/source"
)

// maxPagesFetched bounds the pages of one run.
const maxPagesFetched = 20

// named is a page and the field that names it.
type named struct{ url, field string }

// pages fetches what the handoff and the agent name by URL, each once in a run, when the user allows the network. What is not fetched is a
// finding, and the phase goes on with what there is.
func (c *capture) pages(ctx context.Context, given AcquisitionInput) error {
	wanted := c.wantedPages(given)
	if len(wanted) == 0 {
		return nil
	}
	why, err := c.mayFetch(ctx, wanted)
	if err != nil {
		return err
	}
	if why != "" {
		c.findings = append(c.findings, finding.Finding{Code: "network_not_authorised", Severity: finding.Warning,
			What: fmt.Sprintf("%d page(s) were not fetched: %s", len(wanted), why), Where: &finding.Where{Path: wanted[0].url, Field: wanted[0].field},
			Expected: "the user's word for the network, or the text itself", Remedy: `save the page, then phase_0_input_acquisition {"run_id": "` + c.step.Run.ID + `", "sources": [{"kind": "file", "ref": "<path>"}]}`})
		return nil
	}
	fetcher := source.Fetcher{Addresses: c.authority.Policy.NetworkAddresses}
	for i, n := range wanted {
		if i == maxPagesFetched {
			c.findings = append(c.findings, finding.Finding{Code: "pages_cut", Severity: finding.Warning, What: fmt.Sprintf("only the first %d pages were fetched", maxPagesFetched),
				Where: &finding.Where{Field: n.field}, Remedy: "save the others and send them as files"})
			break
		}
		c.step.Say(contract.PhaseInputAcquisition, "fetching %s", n.url)
		page, err := fetcher.Fetch(ctx, n.url)
		if err != nil {
			if err := c.refused(err, n.field); err != nil {
				return err
			}
			continue
		}
		notes := append([]string{fmt.Sprintf("HTTP %d, %s", page.Status, page.Type)}, page.Notes...)
		if page.ETag != "" {
			notes = append(notes, "ETag "+page.ETag)
		}
		in := evidence.CaptureInput{Kind: evidence.KindURL, Ref: n.url, Text: page.Text, Note: strings.Join(notes, "; "), SHA256: page.SHA256, Bytes: page.Bytes}
		if err := c.add(in, n.field); err != nil {
			return err
		}
	}
	return nil
}

// wantedPages are the URLs that were not captured yet.
func (c *capture) wantedPages(given AcquisitionInput) []named {
	var wanted []named
	want := func(url, field string) {
		known := func(s evidence.Source) bool { return s.Kind == evidence.KindURL && s.Ref == url }
		if url != "" && !slices.ContainsFunc(c.sources, known) && !slices.ContainsFunc(wanted, func(n named) bool { return n.url == url }) {
			wanted = append(wanted, named{url, field})
		}
	}
	want(c.step.Run.Handoff.Inputs.InstructionSource.URL, "inputs.instruction_source.url")
	for i, s := range given.Sources {
		if s.Kind == evidence.KindURL {
			want(s.Ref, fmt.Sprintf("sources[%d].ref", i))
		}
	}
	return wanted
}

// mayFetch says why these pages may not be fetched, "" where they may. Where only the user's word is missing they are asked once, and a yes
// is kept as a grant for these very addresses.
func (c *capture) mayFetch(ctx context.Context, wanted []named) (why string, err error) {
	run := c.step.Run
	if slices.ContainsFunc(run.Handoff.TaskContext.Constraints, offline.MatchString) {
		return "the handoff's constraints refuse the network", nil
	}
	ask, shown := "fetch", ""
	for _, n := range wanted {
		ask += " " + n.url
		shown += "\n  " + launch.Visible(n.url)
	}
	var grants []policy.Grant
	if c.authority.Grants != nil {
		var found []finding.Finding
		if grants, found, err = c.authority.Grants(); err != nil {
			return "", err
		}
		c.findings = append(c.findings, found...)
	}
	switch decision, why := c.authority.Policy.Decide(policy.Network, run.ID, ask, grants); decision {
	case policy.Yes:
		return "", nil
	case policy.No:
		return why, nil
	}
	answer, err := engine.Ask(ctx, c.step.Caller, engine.Question{Field: "allow", Text: "Run " + run.ID + " wants to read from the network:" + shown + "\nAllow it?"})
	switch {
	case err != nil:
		return "", err
	case answer.Reply == engine.Unable:
		return "no grant allows the network; the user allows it with allow: {network: yes} in policy.yaml", nil
	case answer.Reply != engine.Accepted:
		return "the user was asked and did not say yes", nil
	}
	now := c.step.Now().UTC()
	if c.authority.Save != nil {
		if err := c.authority.Save(ctx, policy.Grant{RunID: run.ID, What: policy.Network, Command: ask, By: answer.By, At: now}); err != nil {
			return "", err
		}
	}
	return "", run.Dir.AppendEvent(rundir.Event{Time: now, Event: "approved", By: answer.By, Detail: map[string]any{"what": policy.Network, "how": "elicitation", "command": ask}})
}

// documentBytes is the largest PDF or notebook that is read for its text.
const documentBytes = 64 << 20

// rendered gives a PDF or a notebook as text, with its pages or cells; a quote is looked for in that. The hash stays that of the file.
func (c *capture) rendered(in *evidence.CaptureInput, info fs.FileInfo) {
	extension := strings.ToLower(filepath.Ext(in.Path))
	if extension != ".pdf" && extension != ".ipynb" || !info.Mode().IsRegular() || info.Size() > documentBytes {
		return
	}
	data, err := os.ReadFile(in.Path)
	if err != nil {
		return // Capture says so
	}
	text, notes, err := source.Text(data, "", in.Path)
	if err != nil {
		c.findings = append(c.findings, finding.Finding{Code: "source_not_text", Severity: finding.Warning, What: fmt.Sprintf("%s gives no text to quote: %v", in.Ref, err),
			Where: &finding.Where{Path: in.Path}, Expected: "a document whose text can be read", Remedy: `send its words: {"sources": [{"kind": "text", "ref": "` + filepath.Base(in.Path) + `", "text": "…"}]}`})
		return
	}
	in.Text, in.Note, in.SHA256, in.Bytes = text, strings.Join(notes, "; "), rundir.HashBytes(data), int64(len(data))
}
