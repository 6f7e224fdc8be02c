// Package redact takes secrets out of text on its way to disk, to a log or to an agent. It imports nothing of ours.
//
// A secret is masked byte by byte with '*' and keeps its length, so that every byte range and line number that points
// into the text stays right. The text around a secret (the key, the scheme, the user of a URL) stays readable.
//
// Three things mark a secret: a shape that only a credential has (a GitHub token, a JWT, a private key block), a place
// (the password of a URL, an Authorization header), or a name (password = …) together with a value that is neither a
// placeholder nor code. Hashes, numbers and tokenizer settings are evidence and stay.
package redact
