package metrics

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Point is one logged value. Where NonFinite is set, Value is the NaN or infinity itself, and JSON has null.
type Point struct {
	Time      float64  `json:"time,omitempty"` // seconds since 1970, 0 when not logged
	Step      *int64   `json:"step,omitempty"`
	Epoch     *float64 `json:"epoch,omitempty"`
	Split     string   `json:"split,omitempty"`
	Name      string   `json:"name"`
	Value     float64  `json:"-"`
	NonFinite string   `json:"nonfinite,omitempty"` // nan, inf, -inf or ""
	Unit      string   `json:"unit,omitempty"`
	Line      int      `json:"line"`   // physical line of the row, from 1
	Start     int64    `json:"start"`  // the row's bytes are [Start, End)
	End       int64    `json:"end"`    //
	Digits    int      `json:"digits"` // decimals printed: the last printed digit counts 10^-Digits; negative for 1.2e5
	Text      string   `json:"text"`   // the number as printed
}

// Key is the series that the point belongs to.
func (p Point) Key() Key { return Key{Split: p.Split, Name: p.Name} }

// plainPoint is Point without its methods; pointJSON adds the value, which is null when it is not finite.
type plainPoint Point

type pointJSON struct {
	plainPoint
	Value *float64 `json:"value"`
}

// MarshalJSON writes a non-finite value as null beside "nonfinite", as formats.md has it.
func (p Point) MarshalJSON() ([]byte, error) {
	out := pointJSON{plainPoint: plainPoint(p)}
	if p.NonFinite == "" && !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
		out.Value = &p.Value
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Point) UnmarshalJSON(data []byte) error {
	var in pointJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*p = Point(in.plainPoint)
	switch {
	case in.Value != nil:
		p.Value = *in.Value
	default:
		p.Value = nonFiniteValue(p.NonFinite)
	}
	return nil
}

// printedDecimals is the place of the last printed digit: 0.31 → 2, 1.5e-3 → 4, 120 → 0, 1.2e5 → -4.
func printedDecimals(text string) int {
	mantissa, exponent := splitNumber(text)
	decimals := 0
	if dot := strings.IndexByte(mantissa, '.'); dot >= 0 {
		decimals = len(mantissa) - dot - 1
	}
	return decimals - exponent
}

// Printed is a value as a writer prints it that keeps no more digits than it has to.
func Printed(value float64) Point {
	text := strconv.FormatFloat(value, 'g', -1, 64)
	return Point{Value: value, Text: text, Digits: printedDecimals(text)}
}

// splitNumber parts a printed number into its mantissa without sign and its exponent.
func splitNumber(text string) (mantissa string, exponent int) {
	mantissa = strings.TrimLeft(text, "+-")
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		n, err := strconv.Atoi(mantissa[i+1:])
		if err == nil && n > -400 && n < 400 {
			exponent = n
		}
		mantissa = mantissa[:i]
	}
	return mantissa, exponent
}

// agreement is the relative difference up to which a logged and a recomputed value agree (settled.md).
const agreement = 1e-3

// Agrees says whether a logged value and a recomputed one are the same number: within 1e-3 relative, or within half
// the last digit that the script printed. A value logged in percent is compared as a fraction. A lone digit without a
// decimal point ("1") is not a rounded number but how many writers print 1.0, so half a digit is no excuse there.
func Agrees(logged Point, recomputed float64) bool {
	if logged.NonFinite != "" || math.IsNaN(recomputed) || math.IsInf(recomputed, 0) || math.IsNaN(logged.Value) {
		return false
	}
	scale := 1.0
	if unit := strings.ToLower(strings.TrimSpace(logged.Unit)); unit == "%" || unit == "percent" {
		scale = 0.01
	}
	// The slack lets a difference of exactly half a digit, which binary fractions miss, still agree.
	const slack = 1 + 1e-9
	difference := math.Abs(logged.Value*scale - recomputed)
	if difference <= agreement*math.Max(math.Abs(logged.Value*scale), math.Abs(recomputed))*slack {
		return true
	}
	mantissa, _ := splitNumber(logged.Text)
	if len(mantissa) < 2 {
		return false
	}
	return difference <= 0.5*math.Pow(10, -float64(logged.Digits))*scale*slack
}
