package trainer

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/recall"
)

// The field of the domain, and the beginning of the fields of its metadata.
const (
	domainField    = "task.domain"
	metadataPrefix = "data.domain_metadata."
)

// domainChecklist are the metadata that a domain needs (contracts.md, "Domain metadata kept where the domain applies").
var domainChecklist = map[string][]string{
	contract.DomainEarth: {"time_range", "history_window", "forecast_horizon", "variables", "levels", "grid", "projection", "units", "latitude_order",
		"longitude_convention", "normalisation_source"},
	contract.DomainBiology:        {"species", "reference_build", "sequence_region", "feature_schema", "sample_metadata", "batch_metadata", "coordinate_convention"},
	contract.DomainMaterials:      {"structure_source", "composition", "cell", "periodic_boundary", "descriptor", "units"},
	contract.DomainCFD:            {"mesh", "boundary_conditions", "initial_conditions", "time_step", "physical_variables", "nondimensional_numbers", "conserved_quantities"},
	contract.DomainGeneralScience: {"input_schema", "coordinate_system", "units", "indexing", "preprocessing"},
}

// domainWords are words of a domain that other domains hardly use, in both languages; stems end with *.
var domainWords = map[string]string{
	contract.DomainEarth: "climat* weather meteorolog* atmospher* precipitation rainfall snowfall geopotential era5 cmip5 cmip6 reanalysis netcdf grib sst ozone aerosol* ocean* hydrolog* " +
		"runoff evapotranspiration seismic* glacier* co2 latitude longitude wind_speed humidity 气象 气候 天气 降水 海洋 海温 大气 水文 地震",
	contract.DomainBiology: "gene genes genom* protein* rna dna mrna scrna species cell* tissue* tumor* tumour* cancer* patient* clinical* diagnos* biops* bacteri* virus* microb* enzyme* antibod* peptide* " +
		"phenotyp* genotyp* penguin* neuron* 基因 蛋白 细胞 物种 患者 临床 病毒 组织",
	contract.DomainMaterials: "crystal* lattice alloy* perovskite* bandgap band_gap dft formation_energy molecul* smiles polymer* superconduct* elastic_modulus adsorption* catalyst* phonon* " +
		"晶体 材料 合金 分子 晶格 带隙 催化",
	contract.DomainCFD: "turbulen* navier-stokes reynolds airfoil* aerofoil* vorticity boundary_layer drag_coefficient lift_coefficient incompressible compressible openfoam streamwise laminar mach cfd " +
		"湍流 流体 翼型 雷诺 网格 边界层",
}

// domainPackages and domainFiles are dependencies and endings of data that only one domain uses.
var (
	domainPackages = map[string]string{
		contract.DomainEarth: "xarray cfgrib eccodes netcdf4 cartopy metpy climetlab rioxarray esmpy xesmf iris", contract.DomainBiology: "anndata scanpy biopython pysam scvi-tools squidpy pybedtools esm fair-esm",
		contract.DomainMaterials: "ase pymatgen matminer rdkit dscribe mace-torch matgl openbabel", contract.DomainCFD: "fluidfoam openfoam pyfoam fluiddyn phiflow gmsh",
	}
	domainFiles = map[string]string{
		contract.DomainEarth: ".nc .nc4 .grib .grib2 .grb .grb2", contract.DomainBiology: ".fasta .fa .fastq .fq .vcf .bam .sam .h5ad .gff .gtf .bed .pdb",
		contract.DomainMaterials: ".cif .xyz .poscar .extxyz .sdf .mol", contract.DomainCFD: ".msh .vtu .vtk .foam .cgns",
	}
)

// wordPatterns are the words as expressions.
var wordPatterns = sync.OnceValue(func() map[string]*regexp.Regexp {
	out := map[string]*regexp.Regexp{}
	for domain, words := range domainWords {
		var latin, han []string
		for _, word := range strings.Fields(words) {
			stem, open := strings.CutSuffix(word, "*")
			quoted := strings.ReplaceAll(regexp.QuoteMeta(stem), "_", "[ _-]")
			switch {
			case word[0] >= 0x80:
				han = append(han, quoted)
			case open:
				latin = append(latin, quoted+`\pL*`)
			default:
				latin = append(latin, quoted)
			}
		}
		out[domain] = regexp.MustCompile(`(?i)(?:\b|_)(` + strings.Join(latin, "|") + `)(?:\b|_)|(` + strings.Join(han, "|") + `)`)
	}
	return out
})

// domainEvidence is what speaks for a domain: its terms, each once, with where it was met first.
type domainEvidence struct {
	score  int
	terms  []string // "climate (README.md:3)"
	seen   map[string]bool
	source string // of the first term that a source holds
	quote  string
}

func (e *domainEvidence) add(term, where string, weight int) bool {
	if e.seen == nil {
		e.seen = map[string]bool{}
	}
	key := strings.ToLower(term)
	if len(key) > 5 {
		key = key[:5] // climate, climates and climatology are one word
	}
	if e.seen[key] {
		return false
	}
	e.seen[key] = true
	e.score += weight
	e.terms = append(e.terms, fmt.Sprintf("%s (%s)", term, where))
	return true
}

// The least score by which a domain is named, and by how much it must exceed the next.
const (
	leastDomainScore = 3
	domainLead       = 2
)

// addDomain names the domain: what the handoff says, else what words, packages and files say. Where they say little or
// contradict each other it stays unknown.
func (l *ledger) addDomain(run *engine.Run, view projectView) {
	h := run.Handoff
	found := l.domainEvidence(run, view)
	best, lead := bestDomain(found)
	stated := text(h.Inputs.Data.DomainMetadata["domain"])
	if stated != "" {
		domain := recall.NormalizeDomain(stated)
		if domain == "" {
			l.findings = append(l.findings, finding.Finding{Code: "domain_unknown", Severity: finding.Warning, What: fmt.Sprintf("the domain %q is none that is known", stated),
				Where: &finding.Where{Field: "step_handoff.inputs.data.domain_metadata.domain"}, Expected: "earth, biology, materials, cfd or general-science", Remedy: "correct it, or leave it out to have it found"})
			return
		}
		fact := evidence.Fact{ID: l.nextID(), Field: domainField, Value: domain, Status: evidence.Confirmed, Source: l.handoffSource(), Quote: fmt.Sprintf(`"domain": %q`, stated), By: byUser}
		if stated != domain {
			fact.Status, fact.Why = evidence.Inferred, fmt.Sprintf("%s is %s", stated, domain)
		}
		l.add(fact)
		if best != "" && best != domain && lead >= 2*domainLead {
			l.findings = append(l.findings, finding.Finding{Code: "domain_contradicted", Severity: finding.Note, What: fmt.Sprintf("the handoff says %s; %s speak for %s", stated, finding.Few(found[best].terms, 4), best),
				Where: &finding.Where{Field: domainField}, Remedy: "nothing to do where the handoff is right"})
		}
		return
	}
	if len(l.candidatesFor(domainField)) > 0 || best == "" || found[best].score < leastDomainScore || lead < domainLead {
		return
	}
	e := found[best]
	l.add(evidence.Fact{ID: l.nextID(), Field: domainField, Value: best, Status: evidence.Inferred, By: byServer, Source: e.source, Quote: e.quote, Why: finding.Few(e.terms, 6)})
}

// bestDomain is the domain with the highest score and its lead over the next; "" where two are level.
func bestDomain(found map[string]*domainEvidence) (best string, lead int) {
	next := 0
	for _, domain := range slices.Sorted(maps.Keys(found)) {
		switch e := found[domain]; {
		case best == "" || e.score > found[best].score:
			if best != "" {
				next = max(next, found[best].score)
			}
			best = domain
		default:
			next = max(next, e.score)
		}
	}
	if best == "" || found[best].score == 0 {
		return "", 0
	}
	return best, found[best].score - next
}

func (l *ledger) domainEvidence(run *engine.Run, view projectView) map[string]*domainEvidence {
	found := map[string]*domainEvidence{}
	for domain := range domainWords {
		found[domain] = &domainEvidence{}
	}
	l.wordsOf(found, words(run.Handoff), "the handoff", "", 2)
	for _, s := range l.sources {
		if strings.HasPrefix(s.Ref, "skill://") || !isDocument(s) && s.Kind != evidence.KindText && s.Kind != evidence.KindURL {
			continue // what was recalled was recalled for the words of the request: it proves nothing about the project
		}
		if kept, err := evidence.Kept(l.dir, s); err == nil {
			l.wordsOf(found, string(kept[:min(len(kept), proseBytes)]), s.Ref, s.ID, 1)
		}
	}
	for _, d := range view.Dependencies {
		for domain, names := range domainPackages {
			if slices.Contains(strings.Fields(names), strings.ToLower(d.Name)) {
				found[domain].add("package "+d.Name, fmt.Sprintf("%s:%d", d.Place.Path, d.Place.Line), 2)
			}
		}
	}
	for _, file := range []string{text(l.value("data.train_source")), text(l.value("data.source"))} {
		for domain, endings := range domainFiles {
			if end := strings.ToLower(path.Ext(filepath.ToSlash(file))); end != "" && slices.Contains(strings.Fields(endings), end) {
				found[domain].add("data as "+end, file, 3)
			}
		}
	}
	return found
}

// wordsOf counts the domains' words in a text.
func (l *ledger) wordsOf(found map[string]*domainEvidence, said, ref, source string, weight int) {
	for domain, pattern := range wordPatterns() {
		e := found[domain]
		for _, at := range pattern.FindAllStringSubmatchIndex(said, 400) {
			group := 2
			if at[group] < 0 {
				group = 4
			}
			term, line := said[at[group]:at[group+1]], 1+strings.Count(said[:at[group]], "\n")
			where := ref
			if source != "" {
				where = fmt.Sprintf("%s:%d", path.Base(filepath.ToSlash(ref)), line)
			}
			if e.add(term, where, weight) && e.quote == "" && source != "" {
				e.source, e.quote = source, term
			}
		}
	}
}

// handoffSource is the handoff as it was captured last: an amended one is a source of its own.
func (l *ledger) handoffSource() string {
	for _, s := range slices.Backward(l.sources) {
		if s.Kind == evidence.KindHandoff {
			return s.ID
		}
	}
	return ""
}

// domainOf is the domain in force, or unknown.
func domainOf(facts []evidence.Fact) string {
	if f := holding(facts, domainField); f != nil {
		return text(f.Value)
	}
	return contract.DomainUnknown
}

// metadataNames are the spellings under which a handoff may give an entry of the checklist.
func metadataNames(entry string) []string {
	if american := strings.Replace(entry, "normalisation", "normalization", 1); american != entry {
		return []string{entry, american}
	}
	return []string{entry}
}

// addMetadata takes the checklist's entries from the handoff. What is no scalar is quoted as it stands there.
func (l *ledger) addMetadata(h contract.StepHandoff) {
	for _, entry := range domainChecklist[domainOf(l.facts)] {
		for _, name := range metadataNames(entry) {
			if value, given := h.Inputs.Data.DomainMetadata[name]; given && value != nil {
				status := evidence.Confirmed
				if !scalar(value) {
					status = evidence.Inferred // it is the user's all the same: a list is no verbatim passage
				}
				for i := range l.facts { // the user's word holds
					l.facts[i].InForce = l.facts[i].InForce && l.facts[i].Field != metadataPrefix+entry
				}
				l.facts = append(l.facts, evidence.Fact{ID: l.nextID(), Field: metadataPrefix + entry, Value: value, Status: status, By: byUser, Source: l.handoffSource(), Why: "domain_metadata of the handoff", InForce: true})
			}
		}
	}
}

// missingMetadata are the entries of the domain's checklist that nothing states.
func missingMetadata(facts []evidence.Fact) (missing []string) {
	for _, entry := range domainChecklist[domainOf(facts)] {
		if f := holding(facts, metadataPrefix+entry); f == nil || f.Status == evidence.Missing {
			missing = append(missing, entry)
		}
	}
	return missing
}

// tellMetadata says in one note what the checklist lacks, with the call that supplies it.
func tellMetadata(run *engine.Run, facts []evidence.Fact) []finding.Finding {
	domain, missing := domainOf(facts), missingMetadata(facts)
	if len(missing) == 0 {
		return nil
	}
	return []finding.Finding{{Code: "domain_metadata_missing", Severity: finding.Note,
		What:     fmt.Sprintf("of the %d metadata of the domain %s nothing says: %s", len(domainChecklist[domain]), domain, strings.Join(missing, ", ")),
		Where:    &finding.Where{Path: run.File(knowledgeFile)},
		Expected: "those that apply to this data",
		Remedy: fmt.Sprintf(`where one applies and a source states it: phase_1_training_knowledge {"run_id": %q, "facts": [{"field": %q, "value": …, "source": "s…", "quote": "…"}]}`,
			run.ID, metadataPrefix+missing[0])}}
}

// renderMetadata is the section of training_knowledge.md about the domain.
func renderMetadata(m *markdown, facts []evidence.Fact, docs []string) {
	m.heading(2, "Domain")
	f := holding(facts, domainField)
	if f == nil {
		m.line("unknown: nothing names one.")
		return
	}
	m.line("%s (%s%s)\n", show(f.Value), f.Status, suffix(": ", f.Why))
	where := "ask the user"
	if len(docs) > 0 {
		where = strings.Join(docs[:min(2, len(docs))], ", ") + ", or " + where
	}
	var rows [][]string
	for _, entry := range domainChecklist[text(f.Value)] {
		row := []string{entry, "MISSING", "look in " + where}
		if held := holding(facts, metadataPrefix+entry); held != nil && held.Status != evidence.Missing {
			row = []string{entry, show(held.Value), strings.TrimSpace(held.Status + " " + held.ID)}
		}
		rows = append(rows, row)
	}
	m.table("", []string{"metadata", "value", "status"}, rows)
}

// domainMetadata is what the manifest carries: the handoff's, what facts add to it, and for a series of the earth sciences the
// time range that the data itself spans.
func (w *dataWork) domainMetadata() map[string]any {
	out := maps.Clone(w.step.Run.Handoff.Inputs.Data.DomainMetadata)
	put := func(name string, value any) {
		if out == nil {
			out = map[string]any{}
		}
		if out[name] == nil {
			out[name] = value
		}
	}
	for _, f := range w.facts {
		if name, is := strings.CutPrefix(f.Field, metadataPrefix); is && f.InForce && f.Value != nil && f.Status != evidence.Missing {
			put(name, f.Value)
		}
	}
	if domain := domainOf(w.facts); domain != contract.DomainUnknown {
		put("domain", domain)
	}
	if domainOf(w.facts) == contract.DomainEarth && w.profile != nil {
		if dates := w.timeAxis(); dates != nil {
			put("time_range", []string{dates.First, dates.Last})
		}
	}
	return out
}

// timeAxis is what the column of times spans, where one is named and holds dates.
func (w *dataWork) timeAxis() *dataset.Dates {
	if c := w.profile.Columns[w.column("data.time", w.choice.Time)]; c != nil {
		return c.Dates
	}
	return nil
}
