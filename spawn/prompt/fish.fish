function __sandbox_refused --on-event fish_prompt
	if test -s "$SANDBOX_REFUSED"
		command sleep 0.1
		command cat "$SANDBOX_REFUSED"
		printf '' >"$SANDBOX_REFUSED"; or set -e SANDBOX_REFUSED
	end
end
