package checkpoint

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
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
// uncompressed). Its central directory is written last, so its presence shows that the writer came to the end.
//
// Beside it stand <name>/data.pkl, which is followed without running it (see unpickler), and the sizes of the entries that
// hold the tensors.
func readZip(ctx context.Context, file *os.File, path string, size int64, options Options) (contents, error) {
	inside := contents{format: FormatUnknown, complete: Truncated, keep: options.Tensors}
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
		if inside.format == FormatPyTorchZip {
			return inside, inside.takeCut(file, path, size)
		}
		return inside, nil
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return inside, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	inside.complete = Complete
	inside.why = []string{fmt.Sprintf("zip with its central directory, %d entries", len(archive.File))}
	budget.left = maxDirectory + maxPickle
	var pickle *zip.File
	for n, entry := range archive.File {
		if pickle == nil && (strings.HasSuffix(entry.Name, "/data.pkl") || entry.Name == "data.pkl") {
			inside.format, pickle = FormatPyTorchZip, entry
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
	if pickle == nil {
		inside.why = append(inside.why, "no data.pkl inside: not a PyTorch checkpoint")
		return inside, nil
	}
	if inside.complete != Complete {
		return inside, nil
	}
	if err := inside.takeEntry(archive, pickle, path); err != nil {
		return inside, err
	}
	if options.Checksums && inside.complete == Complete {
		return inside, inside.checksums(ctx, archive, file, path)
	}
	return inside, nil
}

// takeEntry reads the pickle of a whole zip and holds its tensors against the other entries.
func (c *contents) takeEntry(archive *zip.Reader, pickle *zip.File, path string) error {
	at, err := pickle.DataOffset()
	if err != nil {
		return fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	unreadable := func(err error) error {
		c.complete = Unknown
		c.findings = append(c.findings, corrupt(path, at, "data.pkl can't be read: "+err.Error(), "the entry that torch.save writes first"))
		return nil
	}
	source, err := pickle.Open()
	if err != nil {
		return unreadable(err)
	}
	defer source.Close()
	before := len(c.findings)
	walk, err := c.takePickle(source, path, at, int64(min(pickle.UncompressedSize64, 1<<62)), pickle.Method == zip.Store)
	if err != nil {
		return unreadable(err)
	}
	if finding.Has(c.findings[before:], finding.Error) {
		c.complete = Unknown
	}
	if walk != nil {
		walk.checkStorages(archive, path, strings.TrimSuffix(pickle.Name, "data.pkl"), at)
		c.why = append(c.why, fmt.Sprintf("data.pkl names %d tensors in %d storages", c.tensorCount, len(walk.storages)))
	}
	return nil
}

// checksums reads every stored entry and compares its CRC-32. An entry without one is passed over: PyTorch can be told not
// to compute them (torch.serialization.set_crc32_options).
func (c *contents) checksums(ctx context.Context, archive *zip.Reader, file *os.File, path string) error {
	checked := 0
	for _, entry := range archive.File {
		if entry.Method != zip.Store || entry.CRC32 == 0 {
			continue
		}
		start, err := entry.DataOffset()
		if err != nil {
			return fmt.Errorf("read checkpoint %s: %w", path, err)
		}
		sum := crc32.NewIEEE()
		if err := copyAll(ctx, sum, io.NewSectionReader(file, start, int64(entry.CompressedSize64))); err != nil {
			return fmt.Errorf("read checkpoint %s: %w", path, err)
		}
		if checked++; sum.Sum32() != entry.CRC32 {
			c.complete = Unknown
			c.findings = append(c.findings, corrupt(path, start, fmt.Sprintf("the bytes of %s do not match their checksum", clip(entry.Name)), "the bytes that were written"))
			return nil
		}
	}
	c.why = append(c.why, fmt.Sprintf("the checksums of %d entries match", checked))
	return nil
}

// copyAll copies until the end, looking at ctx on the way.
func copyAll(ctx context.Context, into io.Writer, from io.Reader) error {
	buffer := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := from.Read(buffer)
		if _, failed := into.Write(buffer[:n]); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
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
