package redact

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Fake credentials, put together at run time so that no secret scanner takes this file for a leak.
var (
	hex40   = strings.Repeat("0a1b2c3d", 5)
	alnum36 = strings.Repeat("aB3dE6", 6)
	alnum48 = strings.Repeat("aB3dE6", 8)
)

func TestSecretsAreMaskedInPlace(t *testing.T) {
	tests := []struct{ name, before, secret, after string }{
		{"aws key id", "id ", "AKIA" + "ABCDEFGHIJKLMNOP", " here"},
		{"aws secret", "aws_secret_access_key = ", "/" + alnum36 + "+zz", "\n"},
		{"github classic", "", "ghp_" + alnum36, ""},
		{"github fine grained", "use ", "github_pat_" + alnum36, "."},
		{"gitlab", "t: ", "glpat-" + alnum36[:20], ""},
		{"hugging face", `login("`, "hf_" + alnum36, `")`},
		{"openai old", "", "sk-" + alnum48, ""},
		{"openai project", "", "sk-proj-" + alnum48, ""},
		{"anthropic", "", "sk-ant-api03-" + alnum48, "\n"},
		{"slack", "", "xoxb-" + "1234567890-abcdef", ""},
		{"slack hook", "https://", "hooks.slack.com/services/" + "T00000000/B00000000/XXXXXXXX", ""},
		{"wandb in an env file", "WANDB_API_KEY=", hex40, "\nEPOCHS=3\n"},
		{"wandb login", "wandb login ", hex40, ""},
		{"wandb login in python", `wandb.login(key="`, hex40, `")`},
		{"json web token", "x ", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", " y"},
		{"bearer header", "Authorization: Bearer ", "abcdefgh12345678", "\n"},
		{"basic header", "authorization: Basic ", "dXNlcjpwYXNz", "\n"},
		{"header in json", `{"Authorization": "Bearer `, "abcdefgh12345678", `"}`},
		{"bearer alone", "-H 'bearer ", "abcdefgh12345678", "'"},
		{"url password", "postgres://me:", "s3cr3t!", "@db:5432/x"},
		{"url token", "https://", strings.Repeat("ab1", 8), "@git.example.org/x.git"},
		{"yaml", "  password: ", "hunter2", "\n  epochs: 3\n"},
		{"yaml number", "password: ", "12345678", "\n"},
		{"env", "DB_PASSWORD=", "p(ss,w;rd", "\n"},
		{"export", "export HF_TOKEN=", "abcd1234efgh", "\n"},
		{"json", `{"client_secret": "`, "correct horse", `", "epochs": 3}`},
		{"json in json", `{"body": "{\"password\": \"`, "hunter2", `\"}"}`},
		{"python", "api_key = '", "abcd1234efgh", "'"},
		{"python annotation", `    passwd: str = "`, "hunter2", `"`},
		{"python environment", `os.environ["MY_TOKEN"] = "`, "abcd1234efgh", `"`},
		{"python keyword", `connect(user="me", password="`, "hunter2", `", port=1)`},
		{"query", "https://x.org/?token=", "abcd1234efgh", "&page=2"},
		{"flag", "run --api-key ", "abcd1234efgh", " --epochs 3"},
		{"netrc", "machine x login me password ", "abcd1234efgh", "\n"},
		{"camel case", `"accessToken": "`, "abcd1234efgh", `"`},
		{"x-api-key", "X-Api-Key: ", "abcd1234efgh", "\r\n"},
		{"a word for it at the end", "password=", "hunter2secret", "\n"},
		{"inside a log line", "12:00 INFO login password=", "hunter2secret", " ok\n"},
		{"ampersand", "db_password: ", "Tr0ub4dor&3xyz", "\n"},
		{"semicolon", "password=", "Tr0ub;dor)3]x}", " next"},
		{"ends in a bracket", "password: ", "hunter2)", "\n"},
		{"in brackets", "connect(user=me, password=", "Tr0ub&3xyz", ") failed"},
		{"brackets inside brackets", "(db_password=", "hun)ter2", ")\n"},
		{"open bracket in it", "password=", "abc(def", "\n"},
		{"brackets in it", "password=", "P(x)9", "\n"},
		{"backslash", "password=", `hun\der2`, "\n"},
		{"in a json string", `{"m": "password=`, "hunter2", `\nnext step"}`},
		{"comma", "password=", "hunter2", ", user=me"},
		{"pwd", "pwd=", "hunter2secret", "\n"},
		{"db_pwd", "db_pwd: ", "hunter2secret", "\n"},
		{"passwd", "passwd = ", "hunter2secret", "\n"},
		{"db_pass", "DB_PASS=", "hunter2", "\n"},
		{"secret", "client_secret=", "my&secret", "\n"},
		{"short api key", "api_key=", "abcd", "\n"},
		{"api key of letters", "api_key: ", "mysecretapikeyvalue", "\n"},
		{"secret key", "SECRET_KEY = '", "django", "'"},
		{"access token of letters", "access_token=", "supersecretvalue", "\n"},
		{"token with digits", "token: ", "abc123", "\n"},
		{"token of many letters", "token=", "verysecrettokenvalue", "\n"},
		{"credentials", "credentials=", "abcd1234", "\n"},
		{"json key", `{"api_key":"`, "short", `"}`},
		{"json number", `{"password": `, "12345678", `}`},
		{"python dict", "{'db_password': '", "a,b c", "'}"},
		{"list", `passwd: ["`, "hunter2", `"]`},
		{"flow yaml", "{password: ", "hunter2", ", n: 1}"},
		{"hash rocket", `:password=>"`, "hunter2", `"`},
		{"password flag", "run --db-password ", "hunter2", " --epochs 3"},
		{"flag with equals", "run --password=", "hunter2secret", " --epochs 3"},
		{"connection string", "Server=db;Password=", "hun&ter2", ";User=me"},
		{"form", "user=me&password=", "hunter2", "&page=2"},
		{"url with a slash in it", "https://me:", "pa/ss", "@host/x"},
		{"url with an at sign", "postgres://me:", "p@ss", "@host/x"},
		{"not ascii", `password = "`, "pässwört", `"`},
		{"after umlauts", "ünï password=", "hunter2", "\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := test.before + test.secret + test.after
			want := test.before + strings.Repeat("*", len(test.secret)) + test.after
			if got := Text(in); got != want {
				t.Errorf("Text(%q)\n got %q\nwant %q", in, got, want)
			}
			if got := string(Bytes([]byte(in))); got != want {
				t.Errorf("Bytes(%q) = %q", in, got)
			}
			if again := Text(want); again != want {
				t.Errorf("masking twice changes %q to %q", want, again)
			}
		})
	}
}

func TestEvidenceStays(t *testing.T) {
	tests := []string{
		"commit " + hex40,
		"sha256:" + strings.Repeat("0a1b2c3d", 8),
		`{"sha256": "` + strings.Repeat("0a1b2c3d", 8) + `"}`,
		"max_tokens: 512", "tokenizer: bert-base-uncased", "num_tokens=30522", "token_count = 12345678",
		`pad_token = "<|endoftext|>"`, `"eos_token": "</s>"`, "mask_token: [MASK]", `{"token": "hello", "id": 5}`, "token: 12345678",
		"lr: 3e-4", "seed = 1764528000", "val/rmse <= 0.5 K", "0.123456789012345678",
		"token = tokens[i]", "token = tokenizer.next()", "password = getpass.getpass()", "password=args.password", "token=self.token",
		`token = os.environ["HF_TOKEN"]`, "def login(password: str = None, token: Optional[str] = None):", "login(password=password)",
		"password: ${DB_PASSWORD}", "DB_PASSWORD=$PASSWORD", "password: <your password>", `f"Bearer {token}"`, `headers = {"Authorization": f"Bearer {token}"}`,
		`input = getpass("Password: ")`, "api_key_env: WANDB_API_KEY", "api_key: WANDB_API_KEY",
		"token_count=512", "password_policy: strict", "password_hash_rounds = 12", "secret_count: 3", "api_key_name: main", "tokens=abc123",
		"password: required", "api_key: missing", "access_token=expired", "password=db_password", "login(password=dbPassword)", "token=hf_token",
		"connect(password=None).run()", "connect(password=read(path)).run()", "password = keys[0].value", `password = ask(text="Password: ")`, "password = find(path, name)",
		"Client(api_key=value)", "token: train", "token=layer", "first_pass=0.93", "pass: 12", "credentials: include",
		"usage: x [--password PASSWORD] [--token TOKEN]", "--password is required", "password: [", "secret: {", "pwd: ./here", `PWD=C:\work`,
		"ssh://host.org:me/repo.git@v1.2", "http://localhost:8080/a@b", "http://[::1]:80/a@b", "http://host:${PORT}/x@y",
		"PWD=/home/me/project", "OLDPWD=/tmp", "primary_key: station_id_2024", "sort_key = date_column_1", "private_key: /home/me/.ssh/id_rsa2",
		"https://example.org/a:b@c", "git@github.com:me/x.git", "ssh://git@host/x", "https://user:${TOKEN}@host/",
		"the bearer of this letter", "Authorization: required", "if password:\n  print(1)",
		"sk-learn-contrib-hierarchical-clustering-tools", "task-" + alnum48, "hf_hub_download", "secret: false",
		`if "-----BEGIN PRIVATE KEY-----" in text: return parse(text)`,
		"password:\n  other: 3",
	}
	for _, in := range tests {
		if got := Text(in); got != in {
			t.Errorf("Text(%q) = %q", in, got)
		}
	}
}

func TestPrivateKeyBlocks(t *testing.T) {
	line := strings.Repeat("aB3/", 16)
	tests := []struct{ name, in, want string }{
		{"whole", "a\n-----BEGIN RSA PRIVATE KEY-----\n" + line + "\nAg==\n-----END RSA PRIVATE KEY-----\nb",
			"a\n-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("*", 64) + "\n****\n-----END RSA PRIVATE KEY-----\nb"},
		{"cut off", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + line + "\nAg==", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + strings.Repeat("*", 64) + "\n****"},
		{"cut off before code", "-----BEGIN PRIVATE KEY-----\n" + line + "\nx = f(1)", "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("*", 64) + "\nx = f(1)"},
		{"one line", `"-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n"`, `"-----BEGIN PRIVATE KEY-----*******-----END PRIVATE KEY-----\n"`},
		{"public", "-----BEGIN PUBLIC KEY-----\n" + line, "-----BEGIN PUBLIC KEY-----\n" + line},
	}
	for _, test := range tests {
		if got := Text(test.in); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", test.name, got, test.want)
		}
	}
}

func TestValueBelievesTheName(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"HF_TOKEN", "abcd1234efgh", "************"},
		{"DB_PASSWORD", "hunter2", "*******"},
		{"WANDB_API_KEY", hex40, strings.Repeat("*", 40)},
		{"PATH", "/usr/bin:/bin", "/usr/bin:/bin"},
		{"PWD", "/home/me", "/home/me"},
		{"GIT_COMMIT", hex40, hex40},
		{"NOTE", "ghp_" + alnum36, strings.Repeat("*", 40)},
	}
	for _, test := range tests {
		if got := Value(test.name, test.value); got != test.want {
			t.Errorf("Value(%q, %q) = %q, want %q", test.name, test.value, got, test.want)
		}
	}
}

func TestJSONStaysJSON(t *testing.T) {
	in := `{"log": "password=abc\"def token=\"abcd1234efgh\"", "password": "a\\", "n": 1}`
	var v map[string]any
	if got := Text(in); json.Unmarshal([]byte(got), &v) != nil || strings.Contains(got, "abcd1234") {
		t.Errorf("got %s", got)
	}
}

// TestHostileTextTakesLinearTime would run for minutes if every hit looked to the end of the text.
func TestHostileTextTakesLinearTime(t *testing.T) {
	for _, part := range []string{`token:"`, "token=", "token=[", "password:<", "-----BEGIN PRIVATE KEY-----", "a://", "Authorization: Bearer ", "eyJ.", "wandb login", "(password=", "password=(", "api_key=a)", `pwd=\\`, "a://b:c/"} {
		in := strings.Repeat(part, (1<<16)/len(part))
		start := time.Now()
		if got := Text(in); len(got) != len(in) {
			t.Errorf("length %d became %d", len(in), len(got))
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("64 KiB of %q took %v", part, took)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"password: x", `{"token": "ünï1234567"}`, "https://a:b@c", "-----BEGIN PRIVATE KEY-----\nAA", "Authorization: Bearer x", "password=\xff\xfe", `\"password\": \"é`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := Text(in)
		if len(got) != len(in) || strings.Count(got, "\n") != strings.Count(in, "\n") {
			t.Fatalf("%q became %q", in, got)
		}
		if utf8.ValidString(in) && !utf8.ValidString(got) {
			t.Fatalf("%q became invalid: %q", in, got)
		}
		for i := range len(in) {
			if got[i] != in[i] && got[i] != '*' {
				t.Fatalf("byte %d of %q became %q", i, in, got[i])
			}
		}
	})
}
