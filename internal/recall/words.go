package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// containsWord reports whether word occurs in text, both folded, with no letter or digit touching it. Chinese is written
// without spaces, so a Han character on either side of the border separates as well.
func containsWord(text, word string) bool {
	if word == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(word)
	last, _ := utf8.DecodeLastRuneInString(word)
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return false
		}
		at += from
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(word):])
		if border(before, first) && border(last, after) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		from = at + size
	}
}

// border reports whether a word may end between two characters; RuneError stands for the end of the text.
func border(a, b rune) bool {
	wordLike := func(c rune) bool { return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c)) }
	return !wordLike(a) || !wordLike(b) || unicode.Is(unicode.Han, a) || unicode.Is(unicode.Han, b)
}

// The parts of a card that a content request can ask for, each with its file.
var aspects = []struct {
	file  string
	words []string
}{
	{"usage.md", []string{"usage", "use", "how to", "example", "examples", "用法", "使用", "示例"}},
	{"spec.md", []string{"principle", "interface", "config", "configuration", "parameters", "architecture", "spec", "summary", "overview", "原理", "接口", "配置", "参数", "架构", "摘要", "概述", "简介", "总结"}},
	{"workflow_planning.md", []string{"planning", "plan", "workflow", "规划", "计划", "流程"}},
}

var everything = []string{"everything", "all", "complete", "full", "全部", "所有", "完整"}

// wantedFiles reads a content request. What asks for nothing in particular asks for everything.
func wantedFiles(request string) []string {
	folded := fold(request)
	var files []string
	for _, aspect := range aspects {
		if mentions(folded, aspect.words) {
			files = append(files, aspect.file)
		}
	}
	if len(files) == 0 || mentions(folded, everything) {
		return []string{"spec.md", "usage.md", "workflow_planning.md"}
	}
	return files
}

// intents are what a task may be about, the more particular ones first.
var intents = []struct {
	name  string
	words []string
}{
	{"fine_tuning", []string{"finetune", "fine tune", "fine tuning", "finetuning", "微调"}},
	{"training", []string{"train", "training", "fit", "训练"}},
	{"evaluation", []string{"evaluate", "evaluation", "validate", "benchmark", "评估", "验证"}},
	{"inference", []string{"inference", "predict", "prediction", "forecast", "推理", "预测"}},
	{"data_preparation", []string{"dataset", "preprocess", "preprocessing", "convert", "数据集", "预处理"}},
}

// intentOf names what a request is about, or "unknown".
func intentOf(folded string) string {
	for _, intent := range intents {
		if mentions(folded, intent.words) {
			return intent.name
		}
	}
	return "unknown"
}

func mentions(folded string, words []string) bool {
	for _, word := range words {
		if containsWord(folded, word) {
			return true
		}
	}
	return false
}
