package protocol

// ProjectStatus returns what a project's settings file asks for beyond the
// user's own settings, and whether it is trusted. Show this before you ask the
// user for trust.
var ProjectStatus = Request[ProjectParams, Project]{"project/status", ToSidecar}

// ProjectTrust trusts a project's settings file with its present content. The
// file then has its full effect, until its content changes. A file that cannot
// be trusted is refused with CodeProjectNotTrusted.
var ProjectTrust = Request[ProjectTrustParams, Project]{"project/trust", ToSidecar}

// ProjectUntrust withdraws the trust. The file can then only restrict.
var ProjectUntrust = Request[ProjectParams, Project]{"project/untrust", ToSidecar}

// ProjectParams names a project.
type ProjectParams struct {
	// ProjectDir is absolute.
	ProjectDir string `json:"projectDir"`
}

// ProjectTrustParams names a project and the content that the user has seen.
type ProjectTrustParams struct {
	// ProjectDir is absolute.
	ProjectDir string `json:"projectDir"`
	// Digest is the digest of the content that the user has seen. If the file
	// has changed since, it is not trusted. Without it, the present content is
	// trusted.
	Digest string `json:"digest,omitempty"`
}

// Project is the state of a project's settings file.
type Project struct {
	// ProjectDir is the project's real path. Trust is for this path.
	ProjectDir string `json:"projectDir"`
	// File is the project's settings file.
	File string `json:"file"`
	// Exists is false if there is no such file.
	Exists bool `json:"exists"`
	// Trusted is true if the file has its full effect. Otherwise it can only
	// restrict.
	Trusted bool `json:"trusted"`
	// Digest is the SHA-256 of the file's bytes in hexadecimal digits; empty if
	// the file could not be read.
	Digest string `json:"digest"`
	// Asks are the things that the file asks for beyond the user's own settings.
	// If the file is trusted, it has them.
	Asks []Ask `json:"asks"`
	// Problem is why the file cannot be trusted with its present content.
	Problem string `json:"problem,omitempty"`
	// Message says in one line whether the file is trusted. Show it as plain
	// text: the file's name is quoted and escaped.
	Message string `json:"message"`
}

// Ask is one thing that a project's file asks for beyond the user's own
// settings.
type Ask struct {
	// Key is the settings key.
	Key string `json:"key"`
	// Value is the entry of a list, or the key's value as JSON.
	Value string `json:"value"`
	// Opens says in one sentence what it would allow.
	Opens string `json:"opens"`
	// Line is 1-based.
	Line int `json:"line"`
	// Column is 1-based, in bytes.
	Column int `json:"column"`
	// Message says all of this in one line. Show it as plain text: values are
	// quoted, escaped and shortened.
	Message string `json:"message"`
}
