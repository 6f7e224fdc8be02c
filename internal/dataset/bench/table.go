package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// written is what a table holds, known from having written it.
type written struct{ bytes, rows, repeated int64 }

// repeatEvery is how often a row is written twice.
const repeatEvery = 1000

var (
	sites = []string{"Abisko", "Barrow", "Cape Grim", "Davos", "Mauna Loa", "Neumayer", "Palmer", "Zeppelin"}
	notes = []string{"", "", "", "calibrated", "wind from the north, strong", `the "old" probe`}
)

// row is one measurement of a made-up sensor network: a key, a date, a category, numbers, a flag, and words that need
// quotes in a CSV. value is missing in one row of fifty.
type row struct {
	id               int64
	day, month, year int
	site, note       string
	value            float64
	missing          bool
	x, y, z          float64
	count            int
	ok               bool
}

func writeFile(path, form string, size int64) (w written, err error) {
	file, err := os.Create(path)
	if err != nil {
		return w, err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	return writeTable(file, form, size)
}

// writeTable writes rows until size bytes are reached; the same rows each time.
func writeTable(to io.Writer, form string, size int64) (w written, err error) {
	out := bufio.NewWriterSize(to, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	line := []byte("id,date,site,value,x,y,z,count,ok,note\n")
	encode := appendCSV
	if form == "jsonl" {
		line, encode = nil, appendJSON
	}
	put := func() error {
		w.bytes += int64(len(line))
		_, err := out.Write(line)
		return err
	}
	if err := put(); err != nil {
		return w, err
	}
	for id := int64(1); w.bytes < size; id++ {
		line = encode(line[:0], draw(random, id))
		times := 1
		if id%repeatEvery == 0 {
			times = 2
			w.repeated++
		}
		for range times {
			w.rows++
			if err := put(); err != nil {
				return w, err
			}
		}
	}
	return w, out.Flush()
}

func draw(random *rand.Rand, id int64) row {
	return row{id: id, year: 1990 + random.IntN(30), month: 1 + random.IntN(12), day: 1 + random.IntN(28),
		site: sites[random.IntN(len(sites))], note: notes[random.IntN(len(notes))],
		value: random.NormFloat64()*12 + 350, missing: random.IntN(50) == 0,
		x: random.Float64(), y: random.ExpFloat64() * 1000, z: random.NormFloat64(),
		count: random.IntN(5000), ok: random.IntN(10) > 0}
}

func appendCSV(dst []byte, r row) []byte {
	dst = fmt.Appendf(dst, "%d,%04d-%02d-%02d,%s,", r.id, r.year, r.month, r.day, r.site)
	if !r.missing {
		dst = fmt.Appendf(dst, "%.2f", r.value)
	}
	dst = fmt.Appendf(dst, ",%.6f,%.3f,%.5f,%d,%t,", r.x, r.y, r.z, r.count, r.ok)
	switch r.note {
	case notes[4]:
		dst = fmt.Appendf(dst, `"%s"`, r.note)
	case notes[5]:
		dst = append(dst, `"the ""old"" probe"`...)
	default:
		dst = append(dst, r.note...)
	}
	return append(dst, '\n')
}

func appendJSON(dst []byte, r row) []byte {
	dst = fmt.Appendf(dst, `{"id":%d,"date":"%04d-%02d-%02d","site":"%s","value":`, r.id, r.year, r.month, r.day, r.site)
	if r.missing {
		dst = append(dst, "null"...)
	} else {
		dst = fmt.Appendf(dst, "%.2f", r.value)
	}
	return fmt.Appendf(dst, `,"x":%.6f,"y":%.3f,"z":%.5f,"count":%d,"ok":%t,"note":%q}`+"\n", r.x, r.y, r.z, r.count, r.ok, r.note)
}
