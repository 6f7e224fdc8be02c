package source

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	htmltomarkdown "github.com/JohannesKaufmann/html-to-markdown/v2"
	"golang.org/x/net/html/charset"
)

// Text is what a document says: HTML as Markdown, a PDF with a line [page n] before each page, a notebook with a line [cell n …]
// before each cell, text as it is, in UTF-8. mediaType and name are hints; the bytes decide where they can. What holds no text is an
// error that says so. Notes tell what was left out.
func Text(data []byte, mediaType, name string) (text string, notes []string, err error) {
	kind, _, _ := mime.ParseMediaType(mediaType)
	if kind == "" || kind == "application/octet-stream" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(data))
	}
	extension := strings.ToLower(path.Ext(name))
	switch {
	case bytes.HasPrefix(data, []byte("%PDF-")):
		return PDF(data)
	case kind == "application/pdf" || extension == ".pdf":
		return "", nil, fmt.Errorf("it is called a PDF and does not begin as one")
	case extension == ".ipynb" || kind == "application/x-ipynb+json":
		return Notebook(data)
	case kind == "text/html" || kind == "application/xhtml+xml":
		return page(data, mediaType)
	case strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "yaml") || strings.HasSuffix(kind, "xml") || strings.HasSuffix(kind, "toml"):
		return decoded(data, mediaType)
	}
	return "", nil, fmt.Errorf("its type is %s", kind)
}

// decoded brings text to UTF-8.
func decoded(data []byte, mediaType string) (string, []string, error) {
	if bytes.IndexByte(data[:min(len(data), 8<<10)], 0) >= 0 && !utf16(data) {
		return "", nil, fmt.Errorf("it is binary")
	}
	if utf8.Valid(data) {
		return string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), nil, nil
	}
	reader, err := charset.NewReader(bytes.NewReader(data), mediaType)
	if err != nil {
		return "", nil, err
	}
	text, err := io.ReadAll(io.LimitReader(reader, 4*int64(len(data))+16))
	return strings.ToValidUTF8(string(text), "\ufffd"), []string{"it was not in UTF-8"}, err
}

func utf16(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
}

// page turns HTML into Markdown; scripts and styles are left out by the converter.
func page(data []byte, mediaType string) (text string, notes []string, err error) {
	defer held(&err, "the page")
	reader, err := charset.NewReader(bytes.NewReader(data), mediaType)
	if err != nil {
		return "", nil, err
	}
	markdown, err := htmltomarkdown.ConvertReader(io.LimitReader(reader, 4*int64(len(data))+16))
	if err != nil {
		return "", nil, fmt.Errorf("it can't be read as HTML: %w", err)
	}
	return strings.ToValidUTF8(string(markdown), "\ufffd"), nil, nil
}

// held turns a panic of a library into an error.
func held(err *error, what string) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s is damaged: %.200v", what, r)
	}
}
