// Package skills holds the skills that the binary carries: Markdown an agent reads, one folder for each skill.
package skills

import "embed"

// FS is the embedded skills. Each folder at its root is one skill: a SKILL.md whose frontmatter name equals the
// folder's, and the files it refers to.
//
//go:embed all:onescience-trainer
var FS embed.FS
