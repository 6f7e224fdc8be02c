
# The supervisor of one job in POSIX shell, for machines without the trainwright binary. What stands above was rendered
# from request.json; what stands here is the same for every job. It writes the folder that package jobs describes.
#
#	sh runner.sh start       supervise in the background, detached; says nothing
#	sh runner.sh supervise   supervise in this process
#	sh runner.sh cancel      bring the end of the job nearer; cancel.json is there already
#	sh runner.sh look {FOLDER SUPERVISOR START COMMAND START}…   say what of these jobs is alive
#
# TRAINWRIGHT_PROC says where /proc is, TRAINWRIGHT_CGROUP where the memory control group, TRAINWRIGHT_SHELL which shell runs
# the supervisor; nobody has to set them.
#
# Names begin with tw_: a variable that the environment holds under a plain name would reach the command changed. It needs
# sh, awk, cat, date, grep, ln, mkfifo, mv, rm, sed, sleep, sync and tr, and works better with setsid or perl, and with /proc.
# Folders are watched with find, head, sort, stat, xargs and one of sha256sum, shasum and openssl.
#
# How the end of the command is seen: a shell learns from wait only a number in which "exit 137" and "killed by signal 9" are
# the same, and never learns it for a process that is not its child. So the command is the child of a holder that never
# waits (cat on a FIFO): its entry in /proc stays until the runner has read the status there (proc(5), field 52) and lets the
# holder go. When the runner is killed the FIFO ends, and so does the holder. Without /proc the holder waits and writes down
# what wait said.
set -u

tw_proc=${TRAINWRIGHT_PROC:-/proc}
[ -r "$tw_proc/self/stat" ] || tw_proc=
if sleep 0.01 2>/dev/null; then tw_fractions=yes; else tw_fractions=; fi
tw_pid=0 tw_ticks=0 tw_holder=0 tw_started= tw_peak=0 tw_asked= tw_ended= tw_raw= tw_reason= tw_left=0 tw_survivors= tw_memory= tw_kills_file=
tw_clock=0 tw_began=0 tw_kill_at=0 tw_beat_at=0 tw_sample_at=0 tw_sample_pause=10 tw_empty=0 tw_pids= tw_sessions=
tw_mark="TRAINWRIGHT_JOB_MARK=$tw_folder/."

# ---- time -----------------------------------------------------------------------------------------------------------

tw_now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# tw_tick sets tw_clock to hundredths of a second of a clock that nobody sets (where there is /proc).
tw_tick() {
	if [ -n "$tw_proc" ] && read -r tw_clock tw_rest <"$tw_proc/uptime"; then
		tw_clock=${tw_clock%.*}${tw_clock#*.}
		tw_clock=${tw_clock#"${tw_clock%%[!0]*}"} # a leading 0 would make it octal
		tw_clock=${tw_clock:-0}
	else
		tw_clock=$(date +%s)00
	fi
}

# tw_nap N pauses for N hundredths. A signal ends it early, since traps run at once in wait and not in a command.
tw_nap() {
	if [ -n "$tw_fractions" ]; then
		sleep "$(($1 / 100)).$(($1 % 100 / 10))$(($1 % 10))" &
	else
		sleep $((($1 + 99) / 100)) &
	fi
	wait $! 2>/dev/null
}

tw_boot() {
	if [ -n "$tw_proc" ]; then cat "$tw_proc/sys/kernel/random/boot_id" 2>/dev/null; else
		sysctl -n kern.bootsessionuuid 2>/dev/null || sysctl -n kern.boottime 2>/dev/null | sed -n 's/^{ sec = \([0-9]*\),.*/\1/p'
	fi
}

# ---- processes ------------------------------------------------------------------------------------------------------

# tw_ps PID COLUMN prints what ps says of one process. The ps of busybox, which its shell prefers, takes neither -p nor -ww, and
# has no lstart.
tw_ps() { { ps -ww -A -o pid= -o "$2=" || ps -A -o pid= -o "$2="; } 2>/dev/null | sed -n "s/^ *$1 \{1,\}//p"; }

# tw_look PID reads one process into tw_state, tw_threads, tw_start (its start time; with the pid it names one process) and
# tw_status (the wait status of one that has ended). It fails where the process is gone.
tw_look() {
	tw_state=X tw_threads=1 tw_start=0 tw_status=
	[ "$1" -gt 0 ] || return 1
	if [ -z "$tw_proc" ]; then
		tw_state=$(tw_ps "$1" stat)
		[ -n "$tw_state" ] || return 1
		tw_start=$(export LC_ALL=C TZ=UTC0 && tw_ps "$1" lstart | cksum) # a number that stands for the time
		tw_start=${tw_start%% *}
		return 0
	fi
	{ tw_line=$(cat "$tw_proc/$1/stat") && [ -n "$tw_line" ]; } 2>/dev/null || return 1
	set -- ${tw_line##*) } # the name, in parentheses, may hold anything; what follows begins with field 3
	tw_state=$1
	shift 17
	tw_threads=$1 tw_start=$3
	shift 32
	tw_status=$1
}

# tw_alive PID START: the process with this pid is the one that started then, and is no zombie.
tw_alive() {
	tw_look "$1" || return 1
	case $tw_state in [ZXx]*) return 1 ;; esac
	[ "$tw_start" = "$2" ]
}

# tw_supervises PID START: this process supervises the job in tw_folder. Where there is no /proc its start is a time of the
# wall clock, which moves when that is set; then the words it was started with count as well.
tw_supervises() {
	tw_alive "$1" "$2" && return
	[ -z "$tw_proc" ] && tw_ps "$1" args | grep -qF "$tw_folder/runner.sh supervise"
}

# tw_table lists all processes: pid, parent, session (without /proc: process group), state.
tw_table() {
	if [ -n "$tw_proc" ]; then
		cat "$tw_proc"/[0-9]*/stat 2>/dev/null | awk '{
			while (index($0, ")") == 0 && (getline tw_more) > 0) $0 = $0 " " tw_more # a name may hold a newline
			pid = $1; sub(/^.*\) /, ""); print pid, $2, $4, $1 }'
	else
		ps -A -o pid= -o ppid= -o pgid= -o stat=
	fi
}

# tw_marked lists the processes whose environment carries the job's mark. Entries end in NUL there (grep -z, GNU and busybox).
tw_marked() {
	[ -n "$tw_proc" ] || return 0
	grep -lszxF "$tw_mark" "$tw_proc"/[0-9]*/environ 2>/dev/null | sed 's|/environ$||; s|.*/||' | tr '\n' ' '
}

# tw_members [MARKS] sets tw_pids to the job's living processes: those below the holder, those in a session that the job was
# seen to have at the last look, those in MARKS, and what is below them. A session is forgotten when it is empty, so that its
# number may be used again. What leaves its parents, its session and its environment between two looks is not found.
tw_members() {
	tw_found=$(tw_table | awk -v root="$tw_holder" -v self="$$" -v first="$tw_pid" -v old="$tw_sessions" -v marks="${1-}" '
		{ parent[$1] = $2; session[$1] = $3; dead[$1] = $4 ~ /^[ZXx]/ }
		END {
			own = session[self]
			n = split(old, list, " "); for (i = 1; i <= n; i++) known[list[i]] = 1
			n = split(marks, list, " "); for (i = 1; i <= n; i++) top[list[i]] = 1
			if (root > 0) top[root] = 1
			if (first > 0) top[first] = 1
			for (pid in parent) {
				if (pid == root || pid == self || dead[pid]) continue
				in_job = session[pid] in known && session[pid] != own
				for (at = pid; !in_job && at > 1 && depth[pid]++ < 1000; at = parent[at]) in_job = at in top
				if (!in_job) continue
				pids = pid == first ? " " pid pids : pids " " pid # first, before its end is caused by that of another
				if (session[pid] != own && !(session[pid] in said)) { said[session[pid]] = 1; sessions = sessions " " session[pid] }
			}
			print pids "/" sessions
		}')
	tw_pids=${tw_found%%/*} tw_sessions=${tw_found#*/}
}

# tw_kill SIGNAL reaches every member; one that is gone needs none.
tw_kill() {
	[ -z "${tw_pids# }" ] || kill -s "$1" $tw_pids 2>/dev/null
}

# tw_sample looks at who belongs to the job and at the memory they hold together: proportional sets, in which shared pages
# count once, and never less than the largest peak of one of them.
tw_sample() {
	tw_members
	set --
	for tw_at in $tw_pids; do set -- "$@" "$tw_proc/$tw_at/smaps_rollup" "$tw_proc/$tw_at/status"; done
	[ $# -gt 0 ] || return 0
	tw_held=$(if [ -n "$tw_proc" ]; then cat "$@" 2>/dev/null; else for tw_at in $tw_pids; do tw_ps "$tw_at" rss | sed 's/^/Pss: /'; done; fi |
		awk '/^Pss:/ { sum += $2 } /^VmHWM:/ { if ($2 > most) most = $2 } END { printf "%.0f", (sum > most ? sum : most) * 1024 }')
	[ "${tw_held:-0}" -le "$tw_peak" ] || tw_peak=$tw_held
}

# ---- records --------------------------------------------------------------------------------------------------------

# tw_write FILE TEXT leaves the text, on disk, in FILE, or fails.
tw_write() {
	printf '%s\n' "$2" 2>/dev/null >"$1" && [ "$(cat "$1")" = "$2" ] || return 1 # some shells say nothing of a full disk
	sync "$1" 2>/dev/null || sync
}

tw_state_text() {
	# printf rather than a here-document, for which some shells need a temporary file.
	printf '{\n%s  "host": "%s",\n  "submitted_at": "%s",\n' "$tw_state_head" "$(uname -n)" "$tw_submitted"
	[ -z "$tw_started" ] || printf '  "started_at": "%s",\n' "$tw_started"
	printf '  "pid": %s,\n  "start_ticks": %s,\n  "supervisor_pid": %s,\n' "$tw_pid" "$tw_ticks" "$tw_supervisor"
	printf '  "supervisor_start_ticks": %s,\n  "boot_id": "%s",\n' "$tw_supervisor_ticks" "$(tw_boot)"
	printf '  "heartbeat_at": "%s",\n  "peak_rss_bytes": %s\n}\n' "$(tw_now)" "$tw_peak"
}

# tw_beat writes state.json anew; on a full disk the next beat tries again.
tw_beat() {
	tw_tick
	tw_beat_at=$((tw_clock + 500))
	tw_write "$tw_folder/.state.json.$$" "$(tw_state_text)" && mv -f "$tw_folder/.state.json.$$" "$tw_folder/state.json" ||
		rm -f "$tw_folder/.state.json.$$"
}

# tw_take makes this process the one that has the job: state.json comes into being by a hard link, which only one can make.
tw_take() {
	tw_submitted=$(tw_now)
	tw_write "$tw_folder/.state.json.$$" "$(tw_state_text)" || { rm -f "$tw_folder/.state.json.$$"; return 1; }
	if ! ln "$tw_folder/.state.json.$$" "$tw_folder/state.json" 2>/dev/null && { [ -e "$tw_folder/state.json" ] ||
		! mkdir "$tw_folder/runner.taken" 2>/dev/null || ! mv "$tw_folder/.state.json.$$" "$tw_folder/state.json"; }; then
		rm -f "$tw_folder/.state.json.$$"
		return 1
	fi
	rm -f "$tw_folder/.state.json.$$"
	[ ! -e "$tw_folder/exit.json" ]
}

# tw_list FOLDER prints a line "PATH tab BYTES tab TIME" for each regular file below it, "odd" for a name that is not listed
# and "more" where there are too many. Odd are control characters, and the backslash, which sha256sum would escape.
tw_list() (
	cd "$1" 2>/dev/null || return 0
	tw_at=$(pwd -P) tw_own=$(cd "$tw_folder" && pwd -P) tw_odd='*[[:cntrl:]\\]*'
	case $tw_at/ in "$tw_own"/*) return 0 ;; esac
	tw_own=$(printf '%s\n' ".${tw_own#"$tw_at"}" | sed 's/[][*?\\]/\\&/g')
	# shellcheck disable=SC2086 # tw_left_out is several words
	find . -type d \( -path "$tw_own" -o $tw_left_out \) -prune -o -name "$tw_odd" -prune -exec echo odd \;
	# shellcheck disable=SC2086
	find . -type d \( -path "$tw_own" -o $tw_left_out \) -prune -o -name "$tw_odd" -prune -o -type f -print |
		head -n $((tw_files_most + 1)) | tr '\n' '\0' | tw_stat | tw_root=${1%/} awk -v most="$tw_files_most" '
		NR > most { print "more"; exit }
		{ size = $1; at = $2 "T" $3 "Z"; sub(/^[^\/]*/, ""); print ENVIRON["tw_root"] $0 "\t" size "\t" at }'
)

# tw_stat prints "BYTES DATE TIME … ./NAME" of the files whose names, NUL-terminated, it reads.
tw_stat() {
	if stat -c %s / >/dev/null 2>&1; then
		TZ=UTC0 xargs -0 stat -c '%s %y %n'
	else
		TZ=UTC0 xargs -0 stat -f '%z %Sm %N' -t '%Y-%m-%d %H:%M:%S'
	fi
}

# tw_sums prints "SHA256  PATH" of the files whose names it reads.
tw_sums() {
	if command -v sha256sum >/dev/null; then
		tr '\n' '\0' | xargs -0 sha256sum
	elif command -v shasum >/dev/null; then
		tr '\n' '\0' | xargs -0 shasum -a 256
	else
		tr '\n' '\0' | xargs -0 openssl dgst -sha256 -r
	fi
}

# tw_list_left FOLDER… writes left.json: what the job left in these folders. Of the newest files 256 MiB are hashed. A list that
# can't be had is no reason to be without exit.json.
tw_list_left() {
	rm -f "$tw_folder/left.json"
	[ $# -gt 0 ] || return 0
	tw_files_most=20000 tw_hash_most=268435456 tw_tab=$(printf '\t')
	tw_text=$(printf '{\n  "at": "%s",\n  "folders": %s,\n  "hash_limit_bytes": %s,\n  "file_limit": %s,\n' \
		"$(tw_now)" "$tw_watch_text" "$tw_hash_most" "$tw_files_most")
	tw_files=$(for tw_root; do tw_list "$tw_root"; done 2>/dev/null | LC_ALL=C sort -t "$tw_tab" -k 1,1)
	tw_hashes=$(printf '%s\n' "$tw_files" | LC_ALL=C sort -t "$tw_tab" -k 3,3r | LC_ALL=C awk -F '\t' -v room="$tw_hash_most" '
		NF == 3 && $2 <= room && !seen[$1]++ { room -= $2; print $1 }' | tw_sums 2>/dev/null)
	tw_text=$tw_text$(printf '%s\n' "$tw_hashes" "$tw_files" | LC_ALL=C awk -F '\t' '
		BEGIN { printf "\n  \"files\": [" }
		NF == 3 && !seen[$1]++ {
			sum = $1 in sums ? sums[$1] : ""
			gsub(/["\\]/, "\\\\&", $1)
			printf "%s\n    {\n      \"path\": \"%s\",\n      \"bytes\": %s,\n      \"mod_time\": \"%s\",\n      \"sha256\": \"%s\"\n    }", comma, $1, $2, $3, sum
			comma = ","
		}
		NF == 1 && length > 66 { sums[substr($0, 67)] = "sha256:" substr($0, 1, 64) }
		$0 == "odd" { odd++ }
		$0 == "more" { more = 1 }
		END { printf "%s],\n  \"truncated\": %s,\n  \"skipped\": %d\n}", comma == "" ? "" : "\n  ", more ? "true" : "false", odd }')
	tw_write "$tw_folder/.left.json.$$" "$tw_text" && mv -f "$tw_folder/.left.json.$$" "$tw_folder/left.json" ||
		rm -f "$tw_folder/.left.json.$$"
}

# tw_conclude CODE SIGNAL REASON SECONDS lists what the job left and writes exit.json, once. On a full disk it gives the room back that was kept for
# this, and tries again every second for ten minutes.
tw_conclude() {
	rm -f "$tw_folder/verdict.json" # what the command has put there is no verdict
	tw_watched tw_list_left
	tw_list_sum=
	if [ -f "$tw_folder/left.json" ]; then
		tw_list_sum=$(printf '%s\n' "$tw_folder/left.json" | tw_sums 2>/dev/null)
		tw_list_sum=${tw_list_sum%% *}
	fi
	tw_text=$(
		printf '{\n  "code": %s,\n  "signal": %s,\n  "started_at": "%s",\n' "$1" "$2" "${tw_started:-$tw_submitted}"
		printf '  "ended_at": "%s",\n  "seconds": %s,\n  "peak_rss_bytes": %s,\n  "reason": "%s"' "$(tw_now)" "$4" "$tw_peak" "$3"
		[ -z "$tw_memory" ] || printf ',\n  "out_of_memory": "%s"' "$(printf '%s\n' "$tw_memory" | sed 's/["\\]/\\&/g')"
		[ "${#tw_list_sum}" -ne 64 ] || printf ',\n  "left": "sha256:%s"' "$tw_list_sum"
		[ "$tw_left" -eq 0 ] || printf ',\n  "left_behind": %s' "$tw_left"
		[ -z "$tw_survivors" ] || printf ',\n  "survivors": [%s]' "$tw_survivors"
		printf '\n}\n'
	)
	tw_tries=600
	until tw_write "$tw_folder/.exit.json.$$" "$tw_text" && { ln "$tw_folder/.exit.json.$$" "$tw_folder/exit.json" 2>/dev/null ||
		[ -e "$tw_folder/exit.json" ] || mv "$tw_folder/.exit.json.$$" "$tw_folder/exit.json"; }; do
		rm -f "$tw_folder/.exit.json.$$"
		[ -e "$tw_folder/exit.reserve" ] || tw_nap 100
		rm -f "$tw_folder/exit.reserve"
		[ -d "$tw_folder" ] && [ $((tw_tries -= 1)) -gt 0 ] || break # nobody waits for a folder that is gone
	done
	rm -f "$tw_folder/.exit.json.$$" "$tw_folder/exit.reserve" "$tw_folder/runner.go" "$tw_folder/runner.status"
	sync "$tw_folder" 2>/dev/null
}

# tw_find_kills sets tw_kills_file to where the kernel counts what it killed for memory in the control group of this process
# (memory.events of cgroup-v2, memory.oom_control of v1), which the job shares. In a container that is the mount itself.
tw_find_kills() {
	if [ -n "${TRAINWRIGHT_CGROUP:-}" ]; then
		set -- "$TRAINWRIGHT_CGROUP/memory.events"
	else
		set -- "$(sed -n 's|^0::|/sys/fs/cgroup|p' "$tw_proc/self/cgroup" 2>/dev/null)/memory.events" /sys/fs/cgroup/memory.events \
			"$(sed -n 's|^[0-9]*:\([^:]*,\)*memory\(,[^:]*\)*:|/sys/fs/cgroup/memory|p' "$tw_proc/self/cgroup" 2>/dev/null)/memory.oom_control" \
			/sys/fs/cgroup/memory/memory.oom_control
	fi
	for tw_at; do
		if grep -q '^oom_kill ' "$tw_at" 2>/dev/null; then
			tw_kills_file=$tw_at
			return
		fi
	done
}

# tw_kills prints how many the kernel has killed for memory.
tw_kills() { [ -z "$tw_kills_file" ] || sed -n 's/^oom_kill //p' "$tw_kills_file" 2>/dev/null; }

# ---- the command ----------------------------------------------------------------------------------------------------

# tw_find WORD says why the command can't be started and fails with what a shell would exit with.
tw_find() {
	[ -d "$tw_work_dir" ] || { echo "the working directory $tw_work_dir is not there"; return 126; }
	cd "$tw_work_dir" || return 126
	case $1 in
	*/*) tw_files=$1 ;;
	*)
		tw_files= tw_at=$PATH:
		while [ -n "$tw_at" ]; do
			tw_files=${tw_at%%:*} tw_at=${tw_at#*:}
			tw_files=${tw_files:-.}/$1
			[ ! -f "$tw_files" ] || [ ! -x "$tw_files" ] || return 0
		done
		echo "$1: command not found on PATH $PATH"
		return 127
		;;
	esac
	[ -e "$tw_files" ] || { echo "$tw_files: no such file"; return 127; }
	[ ! -d "$tw_files" ] || { echo "$tw_files: is a directory"; return 126; }
	[ -x "$tw_files" ] || { echo "$tw_files: permission denied, it is not executable"; return 126; }
}

# tw_session CALL COMMAND… calls CALL with the command behind what gives it a session of its own, where this system has it.
tw_session() {
	tw_then=$1
	shift
	if tw_at=$(command -v setsid); then
		set -- "$tw_at" "$@"
	elif perl -MPOSIX -e 1 2>/dev/null; then
		set -- "$(command -v perl)" -MPOSIX -e 'POSIX::setsid(); exec { $ARGV[0] } @ARGV or exit 127' -- "$@"
	fi
	"$tw_then" "$@"
}

# tw_child becomes the command. The shell has set SIGINT and SIGQUIT to be ignored, as for everything in the background, and
# can't undo that by itself. All programs are looked up here, since the PATH of the job may lack them.
tw_child() {
	exec </dev/null >>"$tw_folder/stdout.log" 2>>"$tw_folder/stderr.log"
	if env --default-signal=INT,QUIT true 2>/dev/null && case $1 in *=*) false ;; esac then
		set -- "$(command -v env)" --default-signal=INT,QUIT "$@"
	elif perl -e 1 2>/dev/null; then
		set -- "$(command -v perl)" -e '$SIG{INT} = $SIG{QUIT} = "DEFAULT"; exec { $ARGV[0] } @ARGV or exit 127' -- "$@"
	fi
	tw_session tw_become "$@"
}

# tw_become is the command once the runner has recorded its pid.
tw_become() {
	until [ -e "$tw_folder/runner.go" ]; do
		kill -0 $$ 2>/dev/null || exit 125
		sleep 0.02 2>/dev/null || sleep 1
	done
	cd "$tw_work_dir" || exit 126
	export TRAINWRIGHT_JOB_DIR="$tw_folder" "${tw_mark%%=*}=${tw_mark#*=}" TRAINWRIGHT_JOB_ID="$tw_job_id" TRAINWRIGHT_RUN_ID="$tw_run_id"
	export PYTHONUNBUFFERED="${PYTHONUNBUFFERED-1}"
	tw_environment
	exec "$@"
}

# tw_hold starts the command and stays its parent without waiting for it.
tw_hold() {
	tw_child "$@" &
	if [ -n "$tw_proc" ]; then exec cat <"$tw_folder/runner.fifo" >/dev/null; fi
	wait $!
	echo $? >"$tw_folder/runner.status"
}

# tw_start starts the command and sets tw_pid.
tw_start() {
	rm -f "$tw_folder/runner.fifo" "$tw_folder/runner.go" "$tw_folder/runner.status"
	if [ -n "$tw_proc" ]; then mkfifo "$tw_folder/runner.fifo" || return 1; fi
	tw_hold "$@" &
	tw_holder=$!
	if [ -n "$tw_proc" ]; then
		exec 9>"$tw_folder/runner.fifo" # waits for the holder, which has started the command by then
		rm -f "$tw_folder/runner.fifo"
	fi
	until [ "$tw_pid" -gt 0 ]; do
		tw_pid=$(tw_table | awk -v holder="$tw_holder" '$2 == holder { print $1; exit }')
		tw_pid=${tw_pid:-0}
		kill -0 "$tw_holder" 2>/dev/null || return 1
	done
	tw_look "$tw_pid"
	tw_ticks=$tw_start
	tw_started=$(tw_now)
	tw_beat
	tw_tick
	tw_began=$tw_clock
	: >"$tw_folder/runner.go"
}

# tw_has_ended: the command has ended, and tw_raw is its wait status, empty where nobody saw it. A process whose first thread
# is gone shows as a zombie although others still run.
tw_has_ended() {
	if [ -z "$tw_proc" ]; then
		if [ ! -s "$tw_folder/runner.status" ] && kill -0 "$tw_holder" 2>/dev/null; then return 1; fi
		tw_raw=$(cat "$tw_folder/runner.status" 2>/dev/null)
		if [ "${tw_raw:-0}" -gt 128 ]; then tw_raw=$((tw_raw - 128)); elif [ -n "$tw_raw" ]; then tw_raw=$((tw_raw << 8)); fi
		return 0
	fi
	tw_look "$tw_pid" || return 0
	[ "$tw_start" = "$tw_ticks" ] || return 0
	case $tw_state in Z*) [ "$tw_threads" -le 1 ] || return 1 ;; [Xx]*) return 0 ;; *) return 1 ;; esac
	tw_raw=$tw_status
}

# tw_links makes the logs known under the working directory; what is there already stays.
tw_links() {
	mkdir -p "$tw_work_dir/logs" 2>/dev/null
	for tw_at in out err; do
		tw_link=$tw_work_dir/logs/$tw_job_id.$tw_at
		[ -e "$tw_link" ] || [ -L "$tw_link" ] || "$@" "$tw_at" "$tw_link" 2>/dev/null
	done
}

tw_link() { ln -s "$tw_log_target/std$1.log" "$2" || ln "$tw_folder/std$1.log" "$2"; }
tw_copy() { cp "$tw_folder/std$1.log" "$2"; }

# ---- the life of a job ----------------------------------------------------------------------------------------------

# tw_stop REASON KILL_AT asks the whole tree to end, once; the first reason stays.
tw_stop() {
	[ -z "$tw_reason" ] || return 0
	tw_reason=$1 tw_kill_at=$2
	tw_members "$(tw_marked)"
	tw_kill TERM
}

# tw_finish deals with what has outlived the command. It fails when nothing is left, seen twice, since one look can miss what
# is just being started, or when what is left can't be ended.
tw_finish() {
	tw_members "$(tw_marked)"
	if [ -z "${tw_pids# }" ]; then
		tw_empty=$((tw_empty + 1))
		[ "$tw_empty" -lt 2 ]
		return
	fi
	tw_empty=0
	if [ "$tw_kill_at" -eq 0 ]; then
		tw_kill_at=$((tw_clock + 100))
		tw_left=$(echo $tw_pids | awk '{ print NF }')
		tw_kill TERM
	fi
	[ $((tw_clock - tw_kill_at)) -le 1500 ] || {
		tw_survivors=$(echo $tw_pids | sed 's/ /, /g')
		return 1
	}
}

# tw_pause sets tw_pause to the hundredths until something is due: short while the job is young or about to end.
tw_pause() {
	tw_pause=100
	if [ -n "$tw_ended" ] || [ $((tw_clock - tw_began)) -lt 200 ]; then tw_pause=5; elif [ $((tw_clock - tw_began)) -lt 3000 ]; then tw_pause=20; fi
	[ -z "$tw_reason" ] || [ "$tw_pause" -le 10 ] || tw_pause=10
	for tw_at in "$tw_warn_at" "$tw_kill_at"; do
		tw_at=$((tw_at - tw_clock))
		[ "$tw_at" -le 0 ] || [ "$tw_at" -ge "$tw_pause" ] || tw_pause=$tw_at
	done
}

tw_watch() {
	tw_warn_at=0
	[ "$tw_limit" -eq 0 ] || tw_warn_at=$((tw_began + tw_warning * 100))
	while :; do
		tw_tick
		if [ -z "$tw_ended" ] && tw_has_ended; then tw_ended=yes; fi
		if [ -n "$tw_ended" ]; then
			tw_finish || return 0
		elif [ -n "$tw_asked" ] || [ -e "$tw_folder/cancel.json" ]; then
			tw_stop cancelled $((tw_clock + tw_grace * 100))
		elif [ "$tw_warn_at" -gt 0 ] && [ "$tw_clock" -ge "$tw_warn_at" ]; then
			tw_stop wall_time $((tw_began + tw_limit * 100))
		elif [ "$tw_clock" -ge "$tw_sample_at" ]; then
			tw_sample
			tw_sample_at=$((tw_clock + tw_sample_pause))
			[ "$tw_sample_pause" -ge 200 ] || tw_sample_pause=$((tw_sample_pause * 2))
		fi
		if [ "$tw_kill_at" -gt 0 ] && [ "$tw_clock" -ge "$tw_kill_at" ]; then
			[ -n "$tw_ended" ] || tw_members "$(tw_marked)"
			tw_kill KILL
		fi
		[ "$tw_clock" -lt "$tw_beat_at" ] || tw_beat
		tw_pause
		tw_nap "$tw_pause"
	done
}

# tw_run COMMAND… takes the job through its life. From the moment state.json is there nobody else starts the command, so
# that every way out leaves an exit record.
tw_run() {
	if [ -e "$tw_folder/cancel.json" ]; then
		tw_conclude null null cancelled 0
		return
	fi
	printf '%16384s' '' 2>/dev/null >"$tw_folder/exit.reserve"
	: >>"$tw_folder/stdout.log" && : >>"$tw_folder/stderr.log"
	tw_problem=$(tw_environment && tw_find "$1")
	tw_code=$?
	if [ "$tw_code" -eq 0 ]; then
		tw_links tw_link
		tw_find_kills
		tw_killed=$(tw_kills)
		tw_start "$@" || { tw_code=126 tw_problem="the runner could not start it in $tw_folder"; }
	fi
	if [ "$tw_code" -ne 0 ]; then
		echo "trainwright: cannot start the command: $tw_problem" 2>/dev/null >>"$tw_folder/stderr.log"
		tw_conclude "$tw_code" null exited 0
		return
	fi
	tw_watch
	exec 9>&-
	tw_tick
	tw_seconds=$((tw_clock - tw_began)) tw_code=null tw_signal=null
	tw_seconds=$((tw_seconds / 100)).$((tw_seconds % 100 / 10))$((tw_seconds % 10))
	if [ -n "$tw_raw" ]; then
		if [ $((tw_raw & 127)) -gt 0 ]; then
			tw_signal=$(kill -l $((tw_raw & 127)))
			tw_signal="\"SIG${tw_signal#SIG}\""
			tw_reason=${tw_reason:-signalled}
		else
			tw_code=$((tw_raw >> 8 & 255))
		fi
	fi
	if [ -z "$tw_reason" ] || [ "$tw_reason" = signalled ]; then
		case $tw_signal$tw_code in *SIGKILL* | null137)
			tw_kills_now=$(tw_kills)
			[ "${tw_kills_now:-0}" -le "${tw_killed:-0}" ] || tw_memory="$tw_kills_file: oom_kill rose from ${tw_killed:-0} to $tw_kills_now" ;;
		esac
	fi
	tw_links tw_copy
	sync "$tw_folder/stdout.log" "$tw_folder/stderr.log" 2>/dev/null
	tw_conclude "$tw_code" "$tw_signal" "${tw_reason:-exited}" "$tw_seconds"
}

tw_supervise() {
	trap 'tw_asked=yes' TERM INT
	trap : HUP # ignored, it would stay ignored in the command
	cd /
	tw_look $$
	tw_supervisor=$$ tw_supervisor_ticks=$tw_start
	tw_take || return 0
	tw_command tw_run
}

# tw_field NAME is a number or a text of state.json.
tw_field() { sed -n 's/^ *"'"$1"'": "\{0,1\}\([^",]*\)"\{0,1\},\{0,1\}$/\1/p' "$tw_folder/state.json"; }

# tw_cancel wakes a living supervisor, and does the work of one that is gone or never was.
tw_cancel() {
	tw_supervisor=0 tw_supervisor_ticks=0
	[ ! -e "$tw_folder/exit.json" ] || return 0
	if tw_take; then
		tw_conclude null null cancelled 0
		return
	fi
	[ -e "$tw_folder/state.json" ] && [ ! -e "$tw_folder/exit.json" ] || return 0
	tw_submitted=$(tw_field submitted_at) tw_started=$(tw_field started_at) tw_peak=$(tw_field peak_rss_bytes)
	tw_peak=${tw_peak:-0}
	if [ "$(tw_field boot_id)" = "$(tw_boot)" ]; then
		tw_supervisor=$(tw_field supervisor_pid)
		if tw_supervises "${tw_supervisor:-0}" "$(tw_field supervisor_start_ticks)"; then
			kill -s TERM "$tw_supervisor"
			return
		fi
		tw_pid=$(tw_field pid)
		tw_alive "${tw_pid:-0}" "$(tw_field start_ticks)" || tw_pid=0
		tw_end_orphans
	fi
	tw_conclude null null cancelled 0
}

# tw_end_orphans ends what a lost supervisor left.
tw_end_orphans() {
	tw_tick
	tw_kill_at=$((tw_clock + tw_grace * 100))
	tw_members "$(tw_marked)"
	tw_kill TERM
	while tw_tick && tw_finish; do
		[ "$tw_clock" -lt "$tw_kill_at" ] || tw_kill KILL
		tw_nap 5
	done
}

# tw_look_at prints the host, the boot id and for each job one line: is its supervisor alive, is its command, is anything.
tw_look_at() {
	uname -n
	echo "$(tw_boot)"
	while [ $# -ge 5 ]; do
		tw_folder=$1 tw_says='0 0'
		if tw_supervises "$2" "$3"; then tw_says='1 0'; elif tw_alive "$4" "$5"; then tw_says='0 1'; fi
		tw_mark="TRAINWRIGHT_JOB_MARK=$tw_folder/."
		case $tw_says in *1*) echo "$tw_says 1" ;; *) if [ -n "$(tw_marked)" ]; then echo '0 0 1'; else echo '0 0 0'; fi ;; esac
		shift 5
	done
}

case ${1-} in
start)
	# What a client had left open in its server would keep that client waiting for the end of a pipe. These sh can name.
	exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
	# shellcheck disable=SC2086 # TRAINWRIGHT_SHELL may be two words, as "busybox sh"
	tw_session exec ${TRAINWRIGHT_SHELL:-sh} "$tw_folder/runner.sh" supervise </dev/null >/dev/null 2>&1 &
	;;
supervise) tw_supervise ;;
cancel) tw_cancel ;;
look) shift && tw_look_at "$@" ;;
*)
	echo "runner.sh: expected start, supervise, cancel or look" >&2
	exit 64
	;;
esac
