__sandbox_status=$?
__sandbox_refused() {
	if [[ $- != *r* && -s ${SANDBOX_REFUSED-} ]]; then
		command sleep 0.1
		printf '%s\n' "$(<"$SANDBOX_REFUSED")"
		: >|"$SANDBOX_REFUSED" || SANDBOX_REFUSED=
	fi
	[[ $- != *e* ]] || return 0
	return "$__sandbox_status"
}
__sandbox_refused
