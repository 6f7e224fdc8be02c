package dataset

import (
	"bytes"
	"slices"
	"testing"
)

// letters draws sequences, alike on every machine.
type letters uint64

func (l *letters) draw(alphabet string, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		*l = *l*6364136223846793005 + 1442695040888963407
		out[i] = alphabet[uint64(*l>>33)%uint64(len(alphabet))]
	}
	return out
}

const residues = "ACDEFGHIKLMNPQRSTVWY"

func together(t *testing.T, sequences ...[]byte) int {
	t.Helper()
	var c clusters
	for _, sequence := range sequences {
		c.add(sequence)
	}
	leaders, err := c.leaders(background)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(leaders)
	return len(slices.Compact(leaders))
}

// One molecule, written as people do.
func TestOneSequenceInManySpellings(t *testing.T) {
	draw := letters(1)
	gene, protein := draw.draw("ACGT", 300), draw.draw(residues, 900)
	ambiguous := slices.Clone(gene)
	copy(ambiguous[100:], "RYN")
	reverse := slices.Clone(gene)
	slices.Reverse(reverse)
	for i, base := range reverse {
		reverse[i] = complement[base]
	}
	mutant := slices.Clone(protein)
	for i := 20; i < len(mutant); i += 60 {
		mutant[i] = 'W'
	}
	for name, pair := range map[string][2][]byte{
		"ambiguous bases":       {gene, ambiguous},
		"the other strand":      {gene, reverse},
		"RNA in lower case":     {gene, bytes.ToLower(bytes.ReplaceAll(gene, []byte("T"), []byte("U")))},
		"aligned, with gaps":    {gene, append(append(slices.Clone(gene[:50]), "--.-- "...), gene[50:]...)},
		"one base less":         {gene, append(slices.Clone(gene[:150]), gene[151:]...)},
		"a stop":                {protein, append(slices.Clone(protein), '*')},
		"a masked stretch":      {protein, append(append(slices.Clone(protein[:400]), bytes.Repeat([]byte("X"), 60)...), protein[460:]...)},
		"point mutations":       {protein, mutant},
		"a domain of a protein": {protein, protein[300:500]},
		"half a protein":        {protein, protein[450:]},
		"a repeat of one":       {bytes.Repeat([]byte("Q"), 40), bytes.Repeat([]byte("Q"), 50)},
		"nothing known":         {bytes.Repeat([]byte("N"), 30), bytes.Repeat([]byte("N"), 30)},
		"shorter than a k-mer":  {[]byte("MK"), []byte("mk")},
	} {
		if got := together(t, pair[0], pair[1]); got != 1 {
			t.Errorf("%s: %d clusters", name, got)
		}
	}
}

func TestUnrelatedSequencesStayApart(t *testing.T) {
	draw := letters(2)
	var proteins, genes, genomes, peptides [][]byte
	for i := range 300 {
		proteins = append(proteins, draw.draw(residues, 50+5*i))
		genes = append(genes, draw.draw("ACGT", 200+10*i))
		peptides = append(peptides, draw.draw(residues, 9))
	}
	for range 20 {
		genomes = append(genomes, draw.draw("ACGT", 60_000))
	}
	for name, list := range map[string][][]byte{"proteins": proteins, "genes": genes, "genomes": genomes, "peptides": peptides} {
		if got := together(t, list...); got != len(list) {
			t.Errorf("%s: %d of %d", name, got, len(list))
		}
	}
}

// A family larger than a hash's list is followed still holds together.
func TestALargeFamilyIsOneCluster(t *testing.T) {
	draw := letters(3)
	ancestor := draw.draw(residues, 120)
	family := make([][]byte, 3*commonHash)
	for i := range family {
		family[i] = slices.Clone(ancestor)
		for range 5 {
			at := draw.draw(residues, 2)
			family[i][int(at[0])*int(at[1])%120] = at[0]
		}
	}
	if got := together(t, family...); got != 1 {
		t.Errorf("%d clusters", got)
	}
}
