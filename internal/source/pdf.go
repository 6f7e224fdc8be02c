package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"
)

// The limits of a PDF.
const (
	maxPDF       = 64 << 20
	maxPages     = 2000
	maxPageBytes = 32 << 20 // of a page's drawing commands, after decompression
	maxPDFText   = 16 << 20
	pdfTime      = 20 * time.Second
)

// PDF is the text of a PDF, a line [page n] before each page. One that is encrypted, or that holds pictures of text, is an error. The
// pages that can't be read are named in the notes.
func PDF(data []byte) (text string, notes []string, err error) {
	if len(data) > maxPDF {
		return "", nil, fmt.Errorf("the PDF has %d bytes, more than %d", len(data), maxPDF)
	}
	ctx, cancel := context.WithTimeout(context.Background(), pdfTime)
	defer cancel()
	type read struct {
		text  string
		notes []string
		err   error
	}
	done := make(chan read, 1)
	go func() {
		var r read
		defer func() { done <- r }()
		defer held(&r.err, "the PDF")
		r.text, r.notes, r.err = pages(ctx, data)
	}()
	select {
	case r := <-done:
		return r.text, r.notes, r.err
	case <-ctx.Done(): // the library can't be stopped inside a page; between pages it is
		return "", nil, fmt.Errorf("the PDF was not read within %s", pdfTime)
	}
}

func pages(ctx context.Context, data []byte) (string, []string, error) {
	document, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return "", nil, errors.New("the PDF is encrypted")
	}
	if err != nil {
		return "", nil, fmt.Errorf("the PDF is damaged: %w", err)
	}
	count := document.NumPage()
	var text strings.Builder
	var lost []string
	said := false
	for n := 1; n <= min(count, maxPages); n++ {
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		words, err := pageText(document, n)
		if err != nil {
			lost = append(lost, fmt.Sprint(n))
			continue
		}
		said = said || strings.TrimSpace(words) != ""
		fmt.Fprintf(&text, "[page %d]\n%s\n\n", n, strings.TrimSpace(words))
		if text.Len() > maxPDFText {
			return "", nil, fmt.Errorf("the PDF holds more than %d bytes of text", maxPDFText)
		}
	}
	switch {
	case count == 0:
		return "", nil, errors.New("the PDF has no pages")
	case !said:
		return "", nil, fmt.Errorf("the PDF's %d page(s) hold no text, only pictures of it, or text that can't be read", count)
	}
	notes := []string{fmt.Sprintf("%d pages", count)}
	if len(lost) > 0 {
		notes = append(notes, "pages that could not be read: "+strings.Join(lost[:min(len(lost), 20)], ", "))
	}
	if count > maxPages {
		notes = append(notes, fmt.Sprintf("only the first %d pages were read", maxPages))
	}
	return strings.ToValidUTF8(text.String(), "\ufffd"), notes, nil
}

// pageText reads one page, after a look at how much there is to draw: a small file can hold a great deal.
func pageText(document *pdf.Reader, n int) (text string, err error) {
	defer held(&err, fmt.Sprintf("page %d", n))
	page := document.Page(n)
	if page.V.IsNull() {
		return "", errors.New("no such page")
	}
	contents := page.V.Key("Contents")
	streams := []pdf.Value{contents}
	if contents.Kind() == pdf.Array {
		streams = nil
		for i := range contents.Len() {
			streams = append(streams, contents.Index(i))
		}
	}
	left := int64(maxPageBytes)
	for _, stream := range streams {
		if stream.Kind() != pdf.Stream {
			continue
		}
		reader := stream.Reader()
		n, err := io.Copy(io.Discard, io.LimitReader(reader, left+1))
		reader.Close()
		if left -= n; left < 0 {
			return "", errors.New("the page is too large")
		}
		if err != nil {
			return "", err
		}
	}
	return page.GetPlainText(nil)
}
