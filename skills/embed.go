// Package skills holds the skills that the binary carries: Markdown an agent reads, one folder for each skill.
package skills

import "embed"

// FS is the embedded skills. Each folder at its root is one skill: a SKILL.md whose frontmatter name equals the
// folder's, and the files it refers to.
//
//go:embed all:onescience-trainer all:training-cards-earth all:training-cards-biology all:training-cards-materials all:training-cards-cfd all:training-cards-general
var FS embed.FS
