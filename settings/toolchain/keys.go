package toolchain

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"

// keys are the sets of tools that use private keys. An agent such as ssh-agent
// holds those: no place here grants one.
var keys = []Toolchain{
	{
		Name: SSH, About: "ssh: known hosts, configuration, public keys, and the agent's socket. " +
			"A file that holds a private key is never granted.",
		Places: []Place{
			{At: "~/.ssh/known_hosts", Access: policy.Read, Public: true, Why: "the keys of known servers"},
			{At: "~/.ssh/known_hosts2", Access: policy.Read, Public: true, Why: "the keys of known servers"},
			{
				At: "~/.ssh/config", Access: policy.Read, Public: true, SSHConfig: true,
				Why: "the configuration, and the public files that it names",
			},
			{At: "~/.ssh/*.pub", Access: policy.Read, Public: true, Why: "public keys"},
			{At: "~/.ssh/allowed_signers", Access: policy.Read, Public: true, Why: "whose signatures count"},
		},
		Variables: []Variable{{"SSH_AUTH_SOCK", "the agent's socket"}},
		Keys:      policy.SSHAgent,
	},
	{
		Name: "gpg", About: "GnuPG: public keys and configuration, copied for each session, and the agent, " +
			"which signs. Secret keys are never granted.",
		Places: []Place{
			{
				Variable: "GNUPGHOME", At: "~/.gnupg", Below: "pubring.kbx", Access: policy.Read, Public: true,
				Why: "public keys",
			},
			{
				Variable: "GNUPGHOME", At: "~/.gnupg", Below: "pubring.gpg", Access: policy.Read, Public: true,
				Why: "public keys, of GnuPG before 2.1",
			},
			{
				Variable: "GNUPGHOME", At: "~/.gnupg", Below: "public-keys.d/pubring.db", Access: policy.Read,
				Public: true, Why: "public keys, from GnuPG 2.4 on",
			},
			{
				Variable: "GNUPGHOME", At: "~/.gnupg", Below: "trustdb.gpg", Access: policy.Read, Public: true,
				Why: "whose keys count",
			},
			{
				Variable: "GNUPGHOME", At: "~/.gnupg", Below: "gpg.conf", Access: policy.Read, Public: true,
				Why: "the configuration",
			},
			{
				Variable: "GNUPGHOME", At: "~/.gnupg", Below: "common.conf", Access: policy.Read, Public: true,
				Why: "the configuration, from GnuPG 2.4 on",
			},
		},
		Variables: []Variable{{"GNUPGHOME", "where the session's copies are"}},
		Keys:      policy.GPGAgent,
	},
}
