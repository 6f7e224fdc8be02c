package dataset

import (
	"regexp"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// What people write around a split, led to the words that hintReader knows. A column may hold any of them (valid_time), so whole words
// are replaced and quoted names are taken first.
var (
	hintSize      = regexp.MustCompile(`(?i)\b(train|val|valid|validation|test)_size\b`)
	hintTrain     = regexp.MustCompile(`(?i)\btraining\b`)
	hintVal       = regexp.MustCompile(`(?i)\b(?:validation|valid)\b`)
	hintTest      = regexp.MustCompile(`(?i)\b(?:hold[- ]?out|held[- ]out|testing)\b`)
	hintQuoted    = regexp.MustCompile("(?i)\\b(?:by|on|over)\\s+(?:the\\s+)?(?:column\\s+|label\\s+|class\\s+)?[\"'`]([^\"'`\\r\\n]{1,200})[\"'`]")
	hintUnordered = regexp.MustCompile(`(?i)\b(?:no|not|never|without|don't|do not)\s+(?:be\s+|any\s+)?(?:shuffl\w+|random\w*)|\b(?:non|un)-?(?:random|shuffled)\b|\bshuffle\s*[=:]\s*(?:false|no|0)\b`)
	hintRefused   = regexp.MustCompile(`(?i)\b(?:not|never|without)\s+(?:be\s+)?(?:by|on|stratif\w+|group\w*|time)(?:\s+[\p{L}_][\p{L}\p{N}_.-]*)?`)
	hintGrouped   = regexp.MustCompile("(?i)\\bgroup(?:s|ed|ing)?\\s+(?:by|on|over)\\s+(?:the\\s+)?(?:column\\s+)?[\"'`]?([\\p{L}_][\\p{L}\\p{N}_.-]*)[\"'`]?")
	hintStratify  = regexp.MustCompile("(?i)\\bstratif\\w*(?:\\s+(?:by|on|over)\\s+(?:the\\s+)?[\"'`]?[\\p{L}_][\\p{L}\\p{N}_.-]*[\"'`]?)?")
	hintTimeWord  = regexp.MustCompile(`(?i)\b(?:time|temporal|temporally|chronological|chronologically|date)\b`)
	hintByHan     = regexp.MustCompile(`按照?\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*(?:列|字段)?`)
	hintHan       = strings.NewReplacer("随机种子", " seed ", "随机", " random ", "分层", " stratified ", "时间顺序", " chronological ", "时间", " time ", "时序", " time ", "分组", " group ", "相似性", " similarity ",
		"训练集", " train ", "训练", " train ", "验证集", " val ", "验证", " val ", "测试集", " test ", "测试", " test ", "种子", " seed ", "划分", " split ", "按", " by ", "，", ", ", "、", ", ", "％", "%", "：", ":")
)

// plainWords leads a hint to the words of hintReader.
func plainWords(hint string) string {
	hint = hintHan.Replace(hintByHan.ReplaceAllString(hint, " by $1 "))
	hint = hintSize.ReplaceAllString(hint, "$1 ")
	hint = hintTrain.ReplaceAllString(hint, Train)
	hint = hintVal.ReplaceAllString(hint, Val)
	return hintTest.ReplaceAllString(hint, Test)
}

// without takes what the hint forbids: what is not to be shuffled is in order.
func (h *hintReader) without() {
	for h.take(hintUnordered) != nil {
		h.ordered = true
	}
	for h.take(hintRefused) != nil {
	}
}

// together settles a hint that names two strategies. Groups go before classes, since a group in two parts leaks and uneven classes don't;
// time and something else is refused.
func (h *hintReader) together() {
	stratified := hintStratify.MatchString(h.rest)
	if group := hintGrouped.FindStringSubmatch(h.rest); group != nil && (stratified || hintTimeWord.MatchString(hintGrouped.ReplaceAllString(h.rest, ""))) {
		if !stratified {
			h.found = append(h.found, unsupported("group and time together"))
			h.cause = true
			return
		}
		h.take(hintGrouped)
		h.take(hintStratify)
		h.spec.Strategy, h.by = Group, group[1]
		h.note(finding.Warning, "split_classes_uneven", "rows with the same "+group[1]+" stay in one part; the classes are not kept in proportion beside that", "accept it, or name one of the two")
	}
}
