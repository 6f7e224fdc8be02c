package checkpoint

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// maxDirectory bounds the bytes of a zip's central directory that are read, some 300,000 tensors' worth.
const maxDirectory = 32 << 20

// maxEntriesChecked bounds how many entries' places are looked up in the file.
const maxEntriesChecked = 10_000

var errDirectoryTooLarge = errors.New("central directory too large")

// budgetReader fails after a number of bytes, so that a crafted directory can't fill the memory.
type budgetReader struct {
	file *os.File
	left int64
}

func (b *budgetReader) ReadAt(p []byte, offset int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errDirectoryTooLarge
	}
	return b.file.ReadAt(p, offset)
}

// readZip checks the container of a PyTorch checkpoint (torch.save since 1.6: a zip of <name>/data.pkl, <name>/data/0, …,
// uncompressed). Its central directory is written last, so its presence shows that the writer came to the end. The
// pickle inside is not loaded.
func readZip(file *os.File, path string, size int64) (contents, error) {
	inside := contents{format: FormatUnknown, complete: Truncated}
	budget := &budgetReader{file: file, left: maxDirectory}
	archive, err := zip.NewReader(budget, size)
	switch {
	case errors.Is(err, errDirectoryTooLarge):
		inside.complete, inside.why = Unknown, []string{"zip whose directory is too large to read"}
		return inside, nil
	case errors.Is(err, zip.ErrFormat), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		inside.format = zipFormatByHead(file)
		inside.why = []string{"zip without its central directory"}
		inside.findings = []finding.Finding{truncated(path, size,
			fmt.Sprintf("the zip ends at byte %d before the central directory that its writer puts last", size), "a zip's end record")}
		return inside, nil
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return inside, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	inside.complete = Complete
	inside.why = []string{fmt.Sprintf("zip with its central directory, %d entries", len(archive.File))}
	budget.left = maxDirectory
	for n, entry := range archive.File {
		if strings.HasSuffix(entry.Name, "/data.pkl") || entry.Name == "data.pkl" {
			inside.format = FormatPyTorchZip
		}
		if n >= maxEntriesChecked {
			continue
		}
		start, err := entry.DataOffset()
		if err != nil || entry.CompressedSize64 > uint64(size) || start+int64(entry.CompressedSize64) > size {
			inside.complete = Unknown
			inside.findings = append(inside.findings, corrupt(path, max(start, 0),
				fmt.Sprintf("entry %d of the zip does not lie inside the file", n), "every entry before the central directory"))
			break
		}
	}
	if inside.format == FormatUnknown {
		inside.why = append(inside.why, "no data.pkl inside: not a PyTorch checkpoint")
	}
	return inside, nil
}

// zipFormatByHead names the format of a cut zip by its first entry, which torch.save always makes data.pkl.
func zipFormatByHead(file *os.File) string {
	const nameAt = 30 // APPNOTE 4.3.7: fixed part of a local header
	head := make([]byte, 512)
	n, _ := file.ReadAt(head, 0)
	if n <= nameAt {
		return FormatUnknown
	}
	length := int(head[26]) | int(head[27])<<8
	if name := string(head[nameAt:min(n, nameAt+length)]); name == "data.pkl" || strings.HasSuffix(name, "/data.pkl") {
		return FormatPyTorchZip
	}
	return FormatUnknown
}
