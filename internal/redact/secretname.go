package redact

import (
	"path"
	"strings"
)

// secretNames are files and folders that hold credentials, or are git's own, by their whole name in lower case.
var secretNames = setOf(
	".git", ".hg", ".svn", ".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".oci",
	".netrc", "_netrc", ".npmrc", ".yarnrc", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".gitcredentials", ".htpasswd", ".dockercfg", ".dockerconfigjson",
	".s3cfg", ".boto", ".renviron", ".vault-token", ".envrc", ".env", "rclone.conf", "kaggle.json", "auth.json", "authinfo", ".authinfo", "kubeconfig",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "ssh_host_rsa_key", "ssh_host_ed25519_key", "ssh_host_ecdsa_key",
)

// secretWords are names that say that a file is about credentials, whatever its ending: credentials, credentials.json. In a
// longer name they say little: tokenizer.json and special_tokens_map.json are a model's.
var secretWords = setOf("credential", "credentials", ".credentials", "secret", "secrets", ".secrets", "token", "tokens", ".token", "password", "passwords", "passwd",
	"apikey", "apikeys", "api_key", "api_keys", "api-key", "api-keys", "access_token", "hf_token", "client_secret", "client_secrets", "service_account", "service-account",
	"application_default_credentials", "private_key", "privatekey")

// secretStarts and secretEnds are beginnings and ends of such names.
var (
	secretStarts = []string{".env.", "client_secret", "service-account", "service_account", "aws_credentials", "gcp_credentials"}
	secretEnds   = []string{".env", ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".gpg", ".tfstate", ".tfvars", ".ovpn", ".kubeconfig", "_rsa", "_ed25519",
		".token", ".secret", ".secrets", ".credentials", "-credentials.json", "_credentials.json"}
)

// backupEnds are what editors and people put behind the name of a copy, exampleEnds what is behind the name of a file that
// only shows what one with credentials looks like.
var backupEnds = []string{".bak", ".old", ".orig", ".save", ".swp", ".swo", ".tmp", ".copy"}
var exampleEnds = []string{".example", ".sample", ".template", ".dist"}

// codeEndings are those under which a file named by a secret word is code, data or documentation: token.py, secrets.md, tokens.npy.
var codeEndings = setOf(".py", ".go", ".md", ".rst", ".ipynb", ".js", ".ts", ".rs", ".c", ".h", ".cpp", ".java", ".html", ".r", ".jl", ".npy", ".npz", ".parquet", ".bin", ".pt", ".safetensors")

// SecretName says of one name in a path that files and folders of it hold secrets, or are git's own: they are neither served nor listed nor written. It judges by the name
// alone, so that a refusal says nothing about what is there.
func SecretName(name string) bool {
	name = strings.Trim(strings.ToLower(name), "#")
	name = strings.TrimRight(name, " ~.") // an editor's copy, or one that Windows takes for the same
	for i := 0; i < len(backupEnds); i++ {
		if bare, copied := strings.CutSuffix(name, backupEnds[i]); copied && bare != "" {
			name, i = bare, -1 // a copy of a copy
		}
	}
	for _, end := range exampleEnds {
		if strings.HasSuffix(name, end) {
			return false
		}
	}
	if secretNames[name] {
		return true
	}
	if ext := path.Ext(name); !codeEndings[ext] && (secretWords[name] || secretWords[strings.TrimSuffix(name, ext)]) {
		return true
	}
	for _, start := range secretStarts {
		if strings.HasPrefix(name, start) && !codeEndings[path.Ext(name)] {
			return true
		}
	}
	for _, end := range secretEnds {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

func setOf(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
