package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxGoal bounds the step_goal taken from a request, in characters.
const maxGoal = 160

// FromRequest turns plain words into an equivalent handoff. Only the words are taken: every enum stays unknown, and no
// path, optimizer or intent is read into them, since a phase finds those with a quote or asks. The same words give
// the same handoff.
func FromRequest(request string) StepHandoff {
	request = strings.TrimSpace(request)
	sum := sha256.Sum256([]byte(request))
	return StepHandoff{
		StepID:         "request-" + hex.EncodeToString(sum[:4]),
		ExecutionSkill: SkillTrainer,
		StepGoal:       firstSentence(request),
		TaskContext:    TaskContext{UserGoal: request},
		Inputs: Inputs{
			InstructionSource: InstructionSource{SourceType: SourceText, Text: request},
			Model:             Model{SourceType: SourceUnknown, TaskType: "unknown"},
			Parameters:        Parameters{DistributedMode: "unknown"},
			Runtime:           Runtime{ExecutionIntent: IntentUnknown, ExecutionMode: ModeUnknown},
		},
	}
}

// addRequest puts plain words into a handoff that came along with them: as the instruction text and the user's goal
// where those are empty, else into the notes.
func addRequest(handoff *StepHandoff, request string) {
	if handoff.TaskContext.UserGoal == "" {
		handoff.TaskContext.UserGoal = request
	}
	source := &handoff.Inputs.InstructionSource
	switch {
	case source.Text == "":
		source.Text = request
		if source.SourceType == "" || source.SourceType == SourceUnknown {
			source.SourceType = SourceText
			if source.URL != "" || source.LocalPath != "" {
				source.SourceType = SourceMixed
			}
		}
	case source.Text == request || strings.Contains(source.Notes, request):
	case source.Notes == "":
		source.Notes = request
	default:
		source.Notes += "\n\n" + request
	}
}

// firstSentence returns the first sentence of a text on one line. A full stop ends one only before white space, so that
// "lr 0.1" and "train.py" stay whole; a Chinese one always does.
func firstSentence(text string) string {
	text = strings.TrimSpace(text)
	for i, r := range text {
		if r == '\n' || r == '\r' {
			text = text[:i]
			break
		}
		end := i + utf8.RuneLen(r)
		if strings.ContainsRune("。！？", r) || strings.ContainsRune(".!?", r) && endsSentence(text, i, end) {
			text = text[:end]
			break
		}
	}
	runes := []rune(strings.TrimSpace(text))
	if len(runes) <= maxGoal {
		return string(runes)
	}
	return string(runes[:maxGoal-1]) + "…"
}

// endsSentence tells the end of a sentence from an abbreviation such as "e.g. " by the letters before it.
func endsSentence(text string, at, end int) bool {
	next, size := utf8.DecodeRuneInString(text[end:])
	if size > 0 && !unicode.IsSpace(next) {
		return false
	}
	word := text[strings.LastIndexFunc(text[:at], unicode.IsSpace)+1 : at]
	return utf8.RuneCountInString(word) > 1 && !strings.Contains(strings.ToLower(word), "e.g") && !strings.Contains(strings.ToLower(word), "i.e")
}
