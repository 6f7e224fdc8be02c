package evidence

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ValueInQuote tells whether a value stands in the quote that is said to state it.
//
//   - A string occurs in it as whole words, whatever the case: "adam" is not in "AdamW". One that reads as a number may
//     also occur as that number.
//   - A number equals a number in it: 0.0003 is in "lr 3e-4", 1000 in "1,000 steps". A number that is part of a word, a
//     version or carries a unit without a space ("resnet50", "1.2.3", "30s") is none, and 0.5 is not in "50%".
//   - true stands as true, yes or on, false as false, no or off.
//   - A list or an object is in it when each of its values is; an empty one only as [] or {}.
//
// null is in no quote.
func ValueInQuote(value any, quote string) bool {
	text := string(fold([]byte(quote), false).text)
	return valueIn(value, text)
}

func valueIn(value any, text string) bool {
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return stringIn(v, text)
	case bool:
		return boolIn(v, text)
	case json.Number:
		n, err := v.Float64()
		return err == nil && numberIn(n, text)
	}
	v := reflect.ValueOf(value)
	switch {
	case v.CanInt():
		return numberIn(float64(v.Int()), text)
	case v.CanUint():
		return numberIn(float64(v.Uint()), text)
	case v.CanFloat():
		return numberIn(floatOf(v), text)
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		for i := range v.Len() {
			if !valueIn(v.Index(i).Interface(), text) {
				return false
			}
		}
		return v.Len() > 0 || strings.Contains(text, "[]")
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			if !valueIn(v.MapIndex(key).Interface(), text) {
				return false
			}
		}
		return v.Len() > 0 || strings.Contains(text, "{}")
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return valueIn(v.Elem().Interface(), text)
	case v.Kind() == reflect.String:
		return stringIn(v.String(), text)
	}
	return false
}

// floatOf reads a float32 as it would be written, so that float32(0.1) is 0.1.
func floatOf(v reflect.Value) float64 {
	if v.Kind() == reflect.Float32 {
		f, _ := strconv.ParseFloat(fmt.Sprint(v.Interface()), 64)
		return f
	}
	return v.Float()
}

func boolIn(v bool, text string) bool {
	words := []string{"false", "no", "off"}
	if v {
		words = []string{"true", "yes", "on"}
	}
	for _, word := range words {
		if wordsIn(word, text) {
			return true
		}
	}
	return false
}

func stringIn(value, text string) bool {
	value = string(fold([]byte(value), false).text)
	if value == "" {
		return false
	}
	if wordsIn(value, text) {
		return true
	}
	n, err := strconv.ParseFloat(value, 64)
	return err == nil && numberIn(n, text)
}

// wordsIn finds value in text, both folded, without regard to case and not as part of a longer word.
func wordsIn(value, text string) bool {
	value, text = strings.ToLower(value), strings.ToLower(text)
	first, _ := utf8.DecodeRuneInString(value)
	last, _ := utf8.DecodeLastRuneInString(value)
	for at := 0; ; {
		i := strings.Index(text[at:], value)
		if i < 0 {
			return false
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(value):])
		if !(isWordRune(first) && isWordRune(before)) && !(isWordRune(last) && isWordRune(after)) {
			return true
		}
		at = i + 1
	}
}

// isWordRune tells characters that stick together as a word. Scripts that write no spaces have no words to tell apart.
func isWordRune(r rune) bool {
	if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
		return false
	}
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}
