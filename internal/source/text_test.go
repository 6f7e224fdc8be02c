package source

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
	"testing"
	"time"
)

// document writes a PDF with a line of text on each page; packed pages are compressed.
func document(packed bool, lines ...string) []byte {
	var out bytes.Buffer
	var offsets []int
	object := func(body string) {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(offsets), body)
	}
	out.WriteString("%PDF-1.4\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	var kids []string
	for i := range lines {
		kids = append(kids, fmt.Sprintf("%d 0 R", 4+2*i))
	}
	object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(lines)))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	for i, line := range lines {
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 5+2*i))
		stream, filter := fmt.Sprintf("BT /F1 12 Tf 72 720 Td (%s) Tj ET", line), ""
		if packed {
			var b bytes.Buffer
			w := zlib.NewWriter(&b)
			_, _ = w.Write([]byte(stream))
			_ = w.Close()
			stream, filter = b.String(), " /Filter /FlateDecode"
		}
		object(fmt.Sprintf("<< /Length %d%s >>\nstream\n%s\nendstream", len(stream), filter, stream))
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return out.Bytes()
}

func TestAPDFHasItsPages(t *testing.T) {
	for _, packed := range []bool{false, true} {
		text, notes, err := Text(document(packed, "learning rate 0.001", "trained for 40 epochs"), "", "paper.pdf")
		if err != nil || !strings.Contains(text, "[page 1]\nlearning rate 0.001\n") || !strings.Contains(text, "[page 2]\ntrained for 40 epochs\n") || notes[0] != "2 pages" {
			t.Errorf("packed %t: %q %v %v", packed, text, notes, err)
		}
	}
	if _, _, err := PDF(document(false, "", "")); err == nil || !strings.Contains(err.Error(), "no text") {
		t.Errorf("pictures only: %v", err)
	}
	if _, _, err := PDF(document(true, strings.Repeat(" ", maxPageBytes+1))); err == nil {
		t.Error("a page that is a bomb was read")
	}
}

func TestADamagedPDFNeverHangs(t *testing.T) {
	whole := document(true, "learning rate 0.001", "trained for 40 epochs", "seed 17")
	began := time.Now()
	for cut := 0; cut < len(whole); cut += 25 {
		_, _, _ = PDF(whole[:cut])
		flipped := bytes.Clone(whole)
		flipped[cut] ^= 0x55
		_, _, _ = PDF(flipped)
	}
	if took := time.Since(began); took > pdfTime {
		t.Errorf("it took %s", took)
	}
}

func TestANotebookHasItsCells(t *testing.T) {
	text, notes, err := Text([]byte(`{"nbformat": 4, "cells": [
		{"cell_type": "markdown", "source": ["# Train\n", "forty epochs"]},
		{"cell_type": "code", "source": "epochs = 40", "outputs": [{"text": ["loss 0.3\n"]}, {"data": {"text/plain": "7", "image/png": "iVBO"}}, {"ename": "ValueError", "evalue": "bad"}]}]}`), "", "a.ipynb")
	want := "[cell 1, markdown]\n# Train\nforty epochs\n\n[cell 2, code]\nepochs = 40\n\n[cell 2, output]\nloss 0.3\n\n[cell 2, output]\n7\n\n[cell 2, output]\nValueError: bad\n\n"
	if err != nil || text != want || strings.Join(notes, "; ") != "2 cells, 1 of code; 1 pictures left out" {
		t.Errorf("%q %v %v", text, notes, err)
	}
	for _, broken := range []string{"", "{", `{"cells": 3}`, `{"cells": []}`, `[]`} {
		if _, _, err := Notebook([]byte(broken)); err == nil {
			t.Errorf("%q was read", broken)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add(document(true, "a"), "application/pdf", "a.pdf")
	f.Add([]byte(`{"cells": [{"cell_type": "code", "source": ["a"]}]}`), "", "a.ipynb")
	f.Add([]byte("<table><tr><td>a</td></tr></table><p>b"), "text/html; charset=utf-16", "")
	f.Add([]byte("\xff\xfea\x00"), "text/plain", "")
	f.Fuzz(func(t *testing.T, data []byte, mediaType, name string) {
		text, _, err := Text(data, mediaType, name)
		if err == nil && len(text) > 100*len(data)+1<<20 {
			t.Errorf("%d bytes became %d", len(data), len(text))
		}
	})
}
