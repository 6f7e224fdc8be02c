package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// speed is MB/s by the middle of the times.
func (c comparison) speed(of []answer) float64 {
	var seconds []float64
	for _, a := range of {
		seconds = append(seconds, a.Seconds)
	}
	slices.Sort(seconds)
	return float64(c.written.bytes) / megabyte / seconds[len(seconds)/2]
}

// most is the highest peak in MB.
func most(of []answer) (peak float64) {
	for _, a := range of {
		peak = max(peak, a.peak)
	}
	return peak
}

// show prints the comparisons and says whether the aims were reached.
func show(to io.Writer, all []comparison) (met bool, err error) {
	met = true
	columns := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintf(columns, "profile of\tours MB/s\tDuckDB MB/s\tratio, wanted >= %d\tours peak MB, wanted < %d\tDuckDB peak MB\trepeated rows found\trows compared for it\n", wantedRatio, wantedPeak)
	for _, c := range all {
		ours, theirs := c.speed(c.ours), c.speed(c.theirs)
		fast, small := ours >= wantedRatio*theirs, most(c.ours) < wantedPeak
		met = met && fast && small
		last := c.ours[len(c.ours)-1]
		fmt.Fprintf(columns, "%s, %d MB\t%.0f\t%.0f\t%.2f: %s\t%.0f: %s\t%.0f\t%d of %d\t%d of %d\n", c.form, c.written.bytes/megabyte, ours, theirs, ours/theirs, yes(fast),
			most(c.ours), yes(small), most(c.theirs), last.Repeated, c.written.repeated, last.Compared, last.Rows)
	}
	return met, columns.Flush()
}

func yes(met bool) string {
	if met {
		return "yes"
	}
	return "NO"
}
