package redact

import "testing"

func TestSecretNames(t *testing.T) {
	for _, name := range []string{".env", ".ENV", ".env.production", "prod.env", ".env~", "#.env#", ".env.bak", ".env.", "x.pem", "X.PEM", "server.key", "server.key.old", "id_rsa", "id_rsa.bak", "id_ed25519", "deploy_rsa", ".git", ".GIT", ".ssh", ".aws",
		"credentials", "credentials.json", "Credentials.csv", "token", "token.txt", "tokens", "tokens.json", "hf_token", "secrets.yaml", "secrets", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", "kaggle.json", "client_secret_123.json",
		"service-account-prod.json", "my-credentials.json", "store.jks", "a.p12", "terraform.tfstate", "prod.tfvars", ".htpasswd", "password.txt", "api_key.txt"} {
		if !SecretName(name) {
			t.Errorf("%s is served", name)
		}
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "token.py", "tokens.npy", "secrets.md", "tokenization.md", ".env.example", ".env.sample", "id_rsa.pub", "keyboard.csv", "environment.yml", "env.py",
		".gitignore", ".github", "keys.csv", "monkey", "passwordless.md", "train.csv", "config.yaml", "stdout.log", "validation_report.md", "x.bak", ".bak", "#", "~", ".", "runtime_result.json", "authors.json"} {
		if SecretName(name) {
			t.Errorf("%s is hidden", name)
		}
	}
}
