package audit

import (
	"slices"
	"strings"
	"sync"
)

var (
	// shells take a command line after "-c".
	shells = words(`sh bash zsh dash ksh mksh ash fish busybox su runuser script flock cmd pwsh powershell nix-shell
		rbash`)
	// takers read a secret from their standard input; some are commands of
	// others.
	takers = words("chpasswd passwd smbpasswd kinit su secret secrets luksFormat luksOpen luksformat luksopen ssh-add")
	// interpreters take a program in a language of their own.
	interpreters = words("python pypy node nodejs deno bun ruby perl php lua rscript julia awk gawk jq tclsh osascript")
	// databases take statements.
	databases = words("psql mysql mariadb sqlite3 sqlcmd mongosh mongo cqlsh clickhouse-client duckdb")
	// messengers take texts for people.
	messengers = words(`git gh glab hg svn jj tea notify-send claude codex gemini opencode aider llm copilot cursor-agent
		amp goose`)
	// agents take texts for agents.
	agents = words("claude codex gemini opencode aider llm copilot cursor-agent amp goose")
	// readers search for what they are given.
	readers = words("grep egrep fgrep rg ag ack zgrep fd find")
	// noPasswords have another meaning for "-u" and "--user".
	noPasswords = words(`docker podman nerdctl systemd-run sudo doas su install docker-compose kubectl rsync chown git
		sort uniq date diff python node go env pip systemctl journalctl loginctl flatpak crictl runuser bash sh zsh cp npm
		ps id machinectl unshare setpriv`)
	// logins have a password after "-p" if one of their words is "login" or
	// "publish".
	logins = words(`docker podman nerdctl buildah skopeo helm oras crane az oc cf ibmcloud conan kubectl dotnet npm
		poetry`)
)

// option is a flag of a program.
type option struct {
	flag     string
	role     role
	separate bool // the value may be the next argument
	attached bool // the value may follow in the same one
}

// options are flags with secrets that no name tells, by program. A flag that
// ends with "+" has its value in the same argument or in the next one, and with
// "=" only in the same.
var options = sync.OnceValue(func() map[string][]option {
	all := map[string][]option{}
	for _, row := range []struct {
		programs, flags string
		role            role
	}{
		{"mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlbinlog", "-p=", secret},
		{"mariadb mariadb-dump mariadb-admin", "-p=", secret},
		{"sshpass", "-p+", secret},
		{"redis-cli valkey-cli keydb-cli redis-benchmark", "-a+", secret},
		{"mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat", "-p+", secret},
		{"sqlcmd osql bcp tsql isql", "-P+", secret},
		{"ldapsearch ldapmodify ldapadd ldapdelete ldapwhoami ldappasswd ldapcompare ldapmodrdn", "-w+", secret},
		{"ldappasswd", "-s+ -a+", secret},
		{"openssl", "-k -K -hmac", secret},
		{"7z 7za 7zr 7zz rar unrar", "-p= -hp=", secret},
		{"zip unzip zipcloak", "-P+", secret},
		{"ipmitool", "-P+", secret},
		{"snmpget snmpwalk snmpset snmpbulkwalk snmpgetnext", "-A -X -c", secret},
		{"rdesktop tightvncviewer", "-p+", secret},
		{"twine cqlsh conan useradd usermod vsql ncftpget ncftpput impala-shell beeline", "-p+", secret},
		{"gem", "-k+", secret},
		{"nuget", "-k", secret},
		{"doctl", "-t+", secret},
		{"http https xh xhs", "-a+", userAndPassword},
		{"lftp smbclient rpcclient net smbget", "-u -U+", userAndPassword},
		{"wget httpie hey ab wrk vegeta oha", "-H+", header},
		{"ab", "-A -P", userAndPassword},
		{"ab", "-C", cookies},
		{"hey", "-a", userAndPassword},
		{"mosquitto_pub mosquitto_sub", "-P+", secret}, //nolint:misspell // a program
		{"amqp-publish rabbitmqadmin", "-p+", secret},
		{"ansible ansible-playbook", "-e", anything},
		{"cmd", "/c /k", commandLine},
		{"ssh-keygen", "-N+ -P+", secret},
		{"signtool", "/p", secret},
		{"security", "-p+ -w+", secret},
	} {
		for program := range strings.FieldsSeq(row.programs) {
			for flag := range strings.FieldsSeq(row.flags) {
				all[program] = append(all[program], option{
					flag: strings.TrimRight(flag, "+="), role: row.role,
					separate: !strings.HasSuffix(flag, "="),
					attached: strings.HasSuffix(flag, "+") || strings.HasSuffix(flag, "="),
				})
			}
		}
	}
	return all
})

// positions are commands with secrets at their place: "*" is one, "_" any other
// word, and a word with a dot at its end begins one. Flags may stand between,
// and other words where no "*" or "_" follows.
var positions = sync.OnceValue(func() map[string][][]string {
	all := map[string][][]string{}
	for _, row := range []string{
		"cargo login *", "vault login *", "vault unwrap *", "ngrok authtoken *", "ngrok config add-authtoken *",
		"nuget setapikey *", "rabbitmqctl add_user _ *", "rabbitmqctl change_password _ *", "mc alias set _ _ * *",
		"mcli alias set _ _ * *", "net user _ *", "mysqladmin password *", "openssl passwd *", "wpa_passphrase _ *",
		"redis-cli auth * *", "redis-cli config set requirepass *", "redis-cli config set masterauth *",
		"valkey-cli auth * *", "cf auth _ *", "poetry config http-basic. _ *",
		"composer config http-basic. _ *", "composer config github-oauth. *", "rclone obscure *",
		"rclone config create _ _ pass *", "nmcli password *", "iwctl passphrase *",
		"pdftk user_pw *", "pdftk owner_pw *", "pdftk input_pw *", "qpdf --encrypt * *", "mkpasswd *",
		"doppler configure set token *", "snyk auth *", "ansible-vault encrypt_string *",
		"gcloud auth activate-refresh-token _ *", "mc config host add _ _ * *",
	} {
		fields := strings.Fields(row)
		all[fields[0]] = append(all[fields[0]], fields[1:])
	}
	return all
})

// known are the programs that have a meaning here.
var known = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{
		"curl": true, "aws": true, "vault": true, "npm": true, "yarn": true, "pnpm": true, "pip": true, "gcloud": true,
		"htpasswd": true, "sqlplus": true, "echo": true, "wget": true, "bundle": true,
	}
	for _, programs := range []set{shells, interpreters, databases, messengers, readers, logins, agents} {
		for name := range programs() {
			all[name] = true
		}
	}
	for name := range options() {
		all[name] = true
	}
	for name := range positions() {
		all[name] = true
	}
	return all
})

// commandForm is what the words of a command are.
type commandForm struct {
	at      []string       // the program that each word belongs to
	secrets map[int]bool   // words that are secret by their place
	values  map[int]string // words "NAME=VALUE" of which the value is, with the name
}

// commandOf finds out which program each word of a command belongs to: one
// program starts another, as "sudo docker exec db mysql" does.
func commandOf(list []string) commandForm {
	c := commandForm{at: make([]string, len(list)), secrets: map[int]bool{}, values: map[int]string{}}
	program, start := "", 0
	ends := func(end int) { c.place(program, list, start, end) }
	for i, word := range list {
		if word != "" && word[0] != '-' && !strings.ContainsAny(word, " \n=") {
			if name := base(word); i == 0 || known()[name] && !keepsWords(program) {
				ends(i)
				program, start = name, i
			}
		}
		c.at[i] = program
	}
	ends(len(list))
	return c
}

// keepsWords reports whether the words of a program name no other ones.
func keepsWords(program string) bool { return readers.has(program) || program == "echo" }

// place finds the words from start to end that are secret by their place.
func (c *commandForm) place(program string, list []string, start, end int) {
	var plain []int // words that are no flags
	for i := start + 1; i < end; i++ {
		if !strings.HasPrefix(list[i], "-") || list[i] == "--encrypt" {
			plain = append(plain, i)
		}
	}
	for _, row := range positions()[program] {
		c.match(row, list, plain)
	}
	login := false
	for i := start; i < end; i++ {
		switch {
		case i+2 < end && list[i+1] == "=" && strings.HasPrefix(list[i], mark) && meaningOf(list[i]) >= weak:
			c.secrets[i+2] = true
		case i+2 < end && (list[i] == "--arg" || list[i] == "--argjson") && meaningOf(list[i+1]) >= weak:
			c.secrets[i+2] = true
		}
	}
	for n, i := range plain {
		login = login || list[i] == "login" || list[i] == "publish"
		if n+1 < len(plain) && plain[n+1] == i+1 && c.sets(program, list, plain[:n], list[i]) {
			c.secrets[i+1] = true
		}
	}
	switch {
	case login && logins.has(program):
		for i := start + 1; i < end; i++ {
			if list[i-1] == "-p" {
				c.secrets[i] = true
			} else if strings.HasPrefix(list[i], "-p") && len(list[i]) > 2 {
				c.secrets[i] = true
			}
		}
	case program == "htpasswd" && len(plain) > 1:
		for i := start + 1; i < end; i++ {
			if strings.HasPrefix(list[i], "-") && strings.Contains(list[i], "b") {
				c.secrets[plain[len(plain)-1]] = true
			}
		}
	case program == "sqlplus" || program == "sqlldr" || program == "expdp" || program == "impdp":
		for _, i := range plain {
			if strings.Contains(list[i], "/") && !strings.HasPrefix(list[i], "/") && !strings.HasPrefix(list[i], "@") {
				c.secrets[i] = true
			}
		}
	case program == "bundle": // config HOST USER:PASSWORD
		for _, i := range plain {
			if list[plain[0]] == "config" && strings.Contains(list[i], ":") && !strings.Contains(list[i], "/") {
				c.secrets[i] = true
			}
		}
	case program == "vault":
		for _, i := range plain {
			if name, _, is := strings.Cut(list[i], "="); is {
				c.values[i] = name
			}
		}
	}
	if !slices.ContainsFunc(plain, func(i int) bool {
		return list[i] == "secret" || list[i] == "secrets" || list[i] == "secretsmanager"
	}) {
		return
	}
	for i := start + 1; i < end; i++ {
		switch list[i-1] {
		case "-b", "--body", "-v", "--value", "--secret-string", "--secret-binary":
			c.secrets[i] = true
		}
	}
}

// match marks the words of a row of the table.
func (c *commandForm) match(row, list []string, plain []int) {
	n := 0
	var found []int
	for _, field := range row {
		if field == "*" || field == "_" {
			if n >= len(plain) {
				break
			}
			if field == "*" {
				found = append(found, plain[n])
			}
			n++
			continue
		}
		for n < len(plain) && !isField(list[plain[n]], field) {
			n++
		}
		if n++; n > len(plain) {
			return
		}
	}
	for _, i := range found {
		c.secrets[i] = true
	}
}

// isField reports whether a word is what a row of the table has.
func isField(word, field string) bool {
	return strings.EqualFold(word, field) || strings.HasSuffix(field, ".") && strings.HasPrefix(word, field)
}

// sets reports whether a word is the name of a setting whose value is secret,
// and the next word that value: "npm config set //registry/:_authToken X".
func (c *commandForm) sets(program string, list []string, before []int, name string) bool {
	switch program {
	case "set", "setx":
		return meaningOf(name) >= weak
	case "nmcli", "wpa_cli":
		return meaningOf(name) == strong
	}
	if len(before) == 0 || meaningOf(name) < weak || readers.has(program) || strings.Contains(name, "=") {
		return false
	}
	last := list[before[len(before)-1]]
	return last == "set" || last == "config" || last == "configure" || last == "add" && program == "git"
}
